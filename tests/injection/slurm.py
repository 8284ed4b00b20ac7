#!/usr/bin/env python3
"""A Slurm of one machine, as far as `runner` uses it: what it is called as decides what it does.

`sbatch` notes a job and starts a process of its own for it, which ends neither with `sbatch` nor with what called that.
"""

import fcntl
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(os.environ["FAKE_SLURM"])
ENDED = ("COMPLETED", "FAILED", "CANCELLED")


def elements_of(job):
    return sorted(path.name.removeprefix("state.") for path in job.glob("state.*"))


def state_of(job, element):
    return (job / f"state.{element}").read_text()


def has_ended(job):
    return all(state_of(job, element) in ENDED for element in elements_of(job))


def write(path, text):
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.rename(path)


def sbatch(words):
    options = {}
    while words[0].startswith("--"):
        name, _, value = words.pop(0).partition("=")
        options[name] = value
    elements = [""]
    if "--array" in options:
        first, _, last = options["--array"].split("%")[0].partition("-")
        elements = [str(element) for element in range(int(first), int(last or first) + 1)]
    with open(HERE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        number = len(list(HERE.glob("job-*"))) + 1
        draft = HERE / f"draft-{number}"
        draft.mkdir(exist_ok=True)
        for element in elements:
            write(draft / f"state.{element}", "PENDING")
        write(draft / "name", options["--job-name"])
        write(draft / "after", options.get("--dependency", "").removeprefix("afterany:"))
        # A killed `sbatch` leaves a whole job or none.
        draft.rename(HERE / f"job-{number}")
    words = [sys.executable, str(pathlib.Path(__file__).resolve()), "run", str(number), *words]
    subprocess.Popen(words, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(number)


def run(number, script):
    job = HERE / f"job-{number}"
    for before in filter(None, (job / "after").read_text().split(":")):
        while not has_ended(HERE / f"job-{before}"):
            time.sleep(0.02)
    for element in elements_of(job):
        write(job / f"state.{element}", "RUNNING")
        place = {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": element} if element else {"SLURM_JOB_ID": number}
        done = subprocess.run(["bash", *script], env=os.environ | place | {"SLURMD_NODENAME": "n1"})
        write(job / f"state.{element}", "FAILED" if done.returncode else "COMPLETED")


def squeue(words):
    wanted = next(word for word in words if word.startswith("--format="))
    for job in HERE.glob("job-*"):
        number = job.name.removeprefix("job-")
        if wanted == "--format=%F|%j":
            print(f"{number}|{(job / 'name').read_text()}")
            continue
        for element in elements_of(job):
            print(f"{number}{'_' if element else ''}{element}|{state_of(job, element)}|n1|None")


def main():
    name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
    if name == "sbatch":
        sbatch(words)
    elif name == "squeue":
        squeue(words)
    elif name == "scontrol" and words[:1] == ["show"]:
        print("MaxArraySize            = 3")
    elif name == "sinfo":
        print("batch|batch*|infinite")
    elif name == "sacct":
        sys.exit("Slurm accounting storage is disabled")
    elif words[:1] == ["run"]:
        run(words[1], words[2:])


main()
