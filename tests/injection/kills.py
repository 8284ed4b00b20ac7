"""Kills commands, or signals them, at random moments, goes on, and compares what comes of it with an undisturbed run.

    python3 tests/injection/kills.py RUNNER [KILLS] [SIGNALS]

A run is resumed, shards are resumed and merged, a search is resumed, a job is submitted and collected again on a Slurm of
one machine (`slurm.py`), whose tasks go on when `submit` is killed.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from project import MANIFEST, Project

SLURM = pathlib.Path(__file__).resolve().parent / "slurm.py"
JOB = "target/jobs/job"
# How often one command is disturbed at most.
MOST = 4

# Executes a number of steps that grows with the block.
STEP = """extern "C" __global__ void %s(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? in[i] : 0;
    for (unsigned k = 0; k < %d * blockDim.x; ++k) value = sqrtf(value * value);
    if (i < n) out[i] = value;
}
"""


class Rig:
    """A project, and how often its commands were killed."""

    def __init__(self, folder, runner):
        self.project = Project(f"{folder}/p", runner)
        self.folder = self.project.folder
        text = MANIFEST % {"sizes": [64], "timeout": "10s"}
        text = text.replace('baseline = "copies"', 'compare = ["block"]\nbaseline = { variant = "copies", block = 32 }')
        text = text.replace("[axes]", "[axes]\nblock = [32, 64, 128, 256]").replace('name = "x"', 'name = "t"')
        for block in ("32", "64"):
            text = text.replace(f"ceil_div(n, {block})", "ceil_div(n, block)").replace(f"block  = [{block}]", 'block  = ["block"]')
        # No two configurations execute equally many instructions: ties are broken by the order of the search.
        for name in ("copies", "too"):
            text = text.replace(f'source = "copies.cu"\nkernel = "{name}"', f'source = "steps.cu"\nkernel = "{name}"')
        self.project.write("kernels/steps.cu", STEP % ("copies", 1) + STEP % ("too", 3))
        self.project.write("experiments/t.toml", text)
        programs = self.folder / "slurm"
        programs.mkdir()
        for name in ("sbatch", "squeue", "scontrol", "sinfo", "sacct", "scancel"):
            (programs / name).symlink_to(SLURM)
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "FAKE_SLURM": str(self.folder / "queue"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }

    def call(self, *words):
        return self.project.call(*words, env=self.environment)

    def clean(self):
        for name in ("out", "target", "queue", "s1", "s2"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "queue").mkdir()

    def disturbed(self, kinds, took, *words):
        """Runs a command and sends it a signal, if there are any; its exit code, or None if a signal ended it."""
        process = self.project.start(*words, env=self.environment)
        if kinds:
            time.sleep(random.uniform(0, took))
            if process.poll() is None:
                process.send_signal(random.choice(kinds))
        _, said = process.communicate()
        was_ended = process.returncode in (130, *(-kind for kind in kinds))
        return None if was_ended else process.returncode, said

    def until_it_ends(self, kinds, took, first, again):
        """Repeats a command, at last undisturbed; returns how often it was disturbed."""
        words, disturbed = first, 0
        while True:
            code, said = self.disturbed(kinds if disturbed < MOST else [], took, *words)
            if code == 0:
                return disturbed
            assert code is None, f"{words}: exit code {code}: {said}"
            disturbed += 1
            words = again


def run(rig, kinds, took):
    words = ["run", "experiments/x.toml", "--backend", "sim", "--out", "out"]
    return rig.until_it_ends(kinds, took, words, [*words, "--resume"])


def shards(rig, kinds, took):
    disturbed = 0
    for shard in (1, 2):
        words = ["run", "experiments/x.toml", "--backend", "sim", "--shard", f"{shard}/2", "--out", f"s{shard}"]
        disturbed += rig.until_it_ends(kinds, took / 2, words, [*words, "--resume"])
    words = ["merge", "s1", "s2", "--out", "out"]
    return disturbed + rig.until_it_ends(kinds, took / 2, words, words)


def tune(rig, kinds, took):
    words = ["tune", "experiments/t.toml", "--backend", "sim", "--budget", "100%", "--finalists", "2", "--out", "out"]
    disturbed = rig.until_it_ends(kinds, took, words, [*words, "--resume"])
    lines = (rig.folder / "out/search.jsonl").read_text().splitlines()[1:]
    assert len(lines) == 8, f"8 configurations, not {len(lines)} evaluations"
    code, said = rig.call("report", "--check", "out")
    assert code == 0, said
    return disturbed


def submit(rig, kinds, took):
    words = ["submit", "experiments/x.toml", "--backend", "sim", "--min-task-time", "0s", "--name", "job"]
    disturbed = 0
    while True:
        code, said = rig.disturbed(kinds if disturbed < MOST else [], took / 4, *words)
        if code is None:
            disturbed += 1
            continue
        if code == 0:
            break
        assert code in (1, 3), f"submit: exit code {code}: {said}"
        # Another look, as if a minute had passed. A process that was killed leaves no lock.
        assert "the scheduler has not confirmed the last tasks yet" in said, said
        for path in (rig.folder / JOB).glob("submission-*.json"):
            submission = json.loads(path.read_text())
            for array in submission["arrays"]:
                array["sent"] -= 61
            submission.pop("sum", None)
            path.write_text(json.dumps(submission))
    until = time.monotonic() + 120
    while "queued" in (said := rig.call("status", JOB)[1]) or "running" in said:
        assert time.monotonic() < until, said
        time.sleep(0.3)
        for path in (rig.folder / JOB).glob("scheduler-*.json"):
            path.unlink()
    assert ": 4 done\n" in said, said
    started = [line for path in (rig.folder / JOB / "tasks").glob("*.jsonl") for line in path.read_text().splitlines() if '"started"' in line]
    assert len(started) == 4, f"4 tasks ran, not {len(started)}: {started}"
    words = ["collect", JOB, "--out", "out"]
    return disturbed + rig.until_it_ends(kinds, took / 4, words, words)


def main():
    runner, kills, signals = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["200", "100"])[:2])
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(folder, runner)
        for scenario in (run, shards, tune, submit):
            # The second time, everything is in the cache.
            for _ in range(2):
                rig.clean()
                begin = time.monotonic()
                scenario(rig, [], 0)
                took = time.monotonic() - begin
            expected = rig.project.committed()
            kinds = [("kill", [signal.SIGKILL], kills), ("signal", [signal.SIGTERM, signal.SIGHUP], signals)]
            for what, signals_sent, count in kinds:
                sent = reports = 0
                while sent < count:
                    rig.clean()
                    sent += scenario(rig, signals_sent, took)
                    found = rig.project.committed()
                    name = f"{scenario.__name__}, {what} {sent}"
                    different = [file for file in expected if found.get(file) != expected[file]]
                    assert found.keys() == expected.keys() and not different, f"{name}: {different} differ"
                    left = [path.name for path in (rig.folder / "out").rglob(".writing-*")]
                    assert not left, f"{name}: left {left}"
                    reports += 1
                print(
                    f"{scenario.__name__}: {sent} times a {what} at a random moment of {took:.1f} s: "
                    f"{reports} reports, all byte-identical",
                    flush=True,
                )


main()
