#!/usr/bin/env python3
"""Runs the fuzz targets in many processes for a given time, and summarises the result of each.

    program=$(fuzz/build)
    fuzz/run.py "$program" --seconds 480 --processes 16 --out out

`out` then contains `summary.txt`, which is also printed, and `fuzz.tar.gz` with the inputs that failed (`findings/`),
the inputs that reached new code (`corpus/`) and the logs. The exit code is 1 if an input failed. The script needs only
Python, so it also runs on a machine without Rust.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

SEEDS = Path(__file__).resolve().parent / "corpus"
# An input that takes longer counts as a hang, and one that takes more memory as unbounded.
SECONDS_PER_INPUT = 10
MEGABYTES = 2560
LONGEST_INPUT = 1 << 16
# A process stops after this many failures: the same input would fail again and again.
MOST_FAILURES = 20
FAILED = ("crash", "timeout", "oom", "leak")


class Process(threading.Thread):
    """One process of a target, restarted after each input that fails."""

    def __init__(self, arguments, target, number, work, deadline):
        super().__init__()
        self.program, self.target, self.number = arguments.program, target, number
        self.work, self.deadline = work, deadline
        self.corpus = work / "corpus" / target
        self.executions = self.failures = self.covered = 0
        self.ended = ""

    def run(self):
        while (left := int(self.deadline - time.monotonic())) > 0 and self.failures < MOST_FAILURES:
            log = self.work / "logs" / f"{self.target}-{self.number}-{self.failures}.log"
            command = [
                self.program, self.corpus, SEEDS / self.target,
                f"-artifact_prefix={self.work}/findings/{self.target}-",
                f"-max_total_time={left}", f"-timeout={SECONDS_PER_INPUT}", f"-rss_limit_mb={MEGABYTES}",
                f"-max_len={LONGEST_INPUT}", "-reload=30", "-print_final_stats=1",
            ]
            variables = {**os.environ, "RUNNER_FUZZ_TARGET": self.target}
            with log.open("wb") as out:
                # Each has its own folder, so that no target reads what another wrote.
                with tempfile.TemporaryDirectory() as folder:
                    status = subprocess.call(command, stdout=out, stderr=out, env=variables, cwd=folder)
            self.read(log.read_text(errors="replace"))
            if status == 0:
                return
            self.failures += 1
            if not self.executions:
                self.ended = f"ended with {status} before it ran an input; see logs/{log.name}"
                return

    def read(self, log):
        counted = re.findall(r"^stat::number_of_executed_units: (\d+)", log, re.M)
        # A killed process has no statistics: its last line counts.
        counted = counted or re.findall(r"^#(\d+)\t", log, re.M)[-1:]
        self.executions += int(counted[0]) if counted else 0
        self.covered = max([self.covered, *map(int, re.findall(r"\bcov: (\d+)", log))])


def files(folder, prefix=""):
    return sorted(path for path in folder.iterdir() if path.name.startswith(prefix))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda path: Path(path).resolve(), help="what `fuzz/build` made")
    parser.add_argument("targets", nargs="*", help="all if none is named")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument("--corpus", type=Path, help="`fuzz.tar.gz` of an earlier run, which this one goes on from")
    arguments = parser.parse_args()

    known = [folder.name for folder in files(SEEDS)]
    targets = arguments.targets or known
    if unknown := set(targets) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="runner-fuzz-"))
    for folder in ["logs", "findings", *(f"corpus/{target}" for target in known)]:
        (work / folder).mkdir(parents=True)
    if arguments.corpus:
        with tarfile.open(arguments.corpus) as archive:
            members = [member for member in archive.getmembers() if member.name.startswith("corpus/")]
            archive.extractall(work, members, filter="data")
    before = {target: len(files(work / "corpus" / target)) for target in targets}

    deadline = time.monotonic() + arguments.seconds
    count = max(arguments.processes, len(targets))
    processes = [Process(arguments, targets[n % len(targets)], n, work, deadline) for n in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    lines = [f"{count} processes, {arguments.seconds} s each: {count * arguments.seconds / 3600:.2f} hours in all"]
    for target in targets:
        own = [process for process in processes if process.target == target]
        new = len(files(work / "corpus" / target)) - before[target]
        failed = [path.name for kind in FAILED for path in files(work / "findings", f"{target}-{kind}-")]
        slow = files(work / "findings", f"{target}-slow-unit-")
        line = f"{target:14}{sum(process.executions for process in own):>12} executions, {len(own)} processes"
        line += f", {max(process.covered for process in own)} edges, {new} inputs with new code, {len(slow)} slow"
        line += f", FAILED: {' '.join(failed)}" if failed else ", none failed"
        lines.append(line)
        lines.extend(f"{target}: process {process.number} {process.ended}" for process in own if process.ended)
    summary = "\n".join(lines) + "\n"
    (arguments.out / "summary.txt").write_text(summary)
    with tarfile.open(arguments.out / "fuzz.tar.gz", "w:gz") as archive:
        for folder in ["findings", "corpus", "logs"]:
            archive.add(work / folder, folder)
    shutil.rmtree(work)
    print(summary, end="")
    sys.exit("FAILED" in summary or any(process.ended for process in processes))


main()
