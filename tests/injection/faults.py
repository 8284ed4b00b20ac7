"""Injects faults, one after another, and writes a page about what happens.

    python3 tests/injection/faults.py RUNNER [--check] [PAGE]

The page has a table for the simulator and one for a GPU. Without a GPU, the second table is left unchanged.
`tests/it/faults/` makes kernels hang, crash and lose the device in more ways.
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

from project import COPIES, Project

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/faults.md"

HEAD = """# Faults

What can go wrong, how a run handles it, and what survives. `tests/injection/faults.py` injects every fault, compares what
survives with an undisturbed run, and writes this page.

## On the simulator

"""

TABLE = """| fault | injected by | outcome | what survives |
|---|---|---|---|
"""

ON_A_GPU = """
## On a GPU

Times differ from run to run, so the other rows count as *right* if they have all their cases, each measured and checked.
Faults of journals, records and folders do not depend on the device. `tests/it/faults/` covers more ways in which kernels
and host functions fail.

"""


class Rows:
    def __init__(self, runner, folder, backend):
        self.runner, self.folder, self.backend, self.lines, self.count = runner, folder, backend, [], 0
        undisturbed = self.project()
        code, said = undisturbed.run()
        assert code == 0, said
        self.expected, self.undisturbed = undisturbed.rows(), undisturbed.committed()

    @property
    def is_gpu(self):
        return self.backend == "cuda"

    def project(self, faulty=None, **more):
        self.count += 1
        return Project(f"{self.folder}/{self.count}", self.runner, faulty, backend=self.backend, **more)

    def add(self, fault, how, outcome, left):
        self.lines.append(f"| {fault} | {how} | {outcome} | {left} |")

    def same(self, project):
        """Asserts that the other rows are those of an undisturbed run."""
        if self.is_gpu:
            named = lambda rows: [{k: row[k] for k in ("variant", "axis.n", "regime", "verdict")} for row in rows]
            assert named(project.rows()) == named(self.expected), "other rows differ"
            assert {row["outcome"] for row in project.rows()} <= {"measured", "unstable"}, project.rows()
            return "every other row right"
        strip = lambda rows: [{k: v for k, v in row.items() if k != "case"} for row in rows]
        assert strip(project.rows()) == strip(self.expected), "other rows differ"
        return "all other rows, unchanged"

    def whole(self, project):
        if self.is_gpu:
            self.same(project)
            return "a report with every row"
        assert project.committed() == self.undisturbed, "the report differs"
        return "the same report"


# Outcomes of faulty cases on a GPU.
ON_GPU = {
    "a kernel writes past its buffer": "wrong",
    "a kernel writes 280 KB past its buffer": "launch_error",
    "a kernel reads through a null pointer": "launch_error",
    "a kernel reads from a misaligned address": "launch_error",
    "a kernel aborts": "launch_error",
    "a kernel never ends": "timed_out",
    "a kernel is wrong": "wrong",
    "a kernel prints megabytes": "wrong",
    "a source does not compile": "compile_error",
}


def kernels(rows):
    of_gpus = [
        ("a kernel writes 280 KB past its buffer", "`out[n + 71680] = 1`", "    out[n + 71680] = 1.0f;\n", "10s"),
        ("a kernel reads from a misaligned address", "`(char *)in + 1`",
         "    out[0] = *(volatile float *)((const char *)in + 1);\n", "10s"),
        ("a kernel aborts", "`__trap()`", "    __trap();\n", "10s"),
    ]
    faults = of_gpus * rows.is_gpu + [
        ("a kernel writes past its buffer", "`out[n + 7] = 1`", "    out[n + 7] = 1.0f;\n", "10s"),
        ("a kernel reads through a null pointer", "`*(float *)0`", "    out[0] = *(volatile float *)nullptr;\n", "10s"),
        ("a kernel never ends", "`while (true)`", "    while (true) { ((volatile float *)out)[0] = 1.0f; }\n", "1s"),
        ("a kernel is wrong", "adds 1", "    unsigned i = blockIdx.x * 32 + threadIdx.x;\n    if (i < n) out[i] = in[i] + 1;\n", "10s"),
        ("a kernel prints megabytes", "`printf` in a loop",
         "    for (int i = 0; i < 400; ++i) printf(\"%d: what a kernel prints\\n\", i);\n    out[0] = in[0];\n", "10s"),
        ("a source does not compile", "an undefined name", "    out[0] = nowhere;\n", "10s"),
    ]
    for fault, how, body, timeout in faults:
        project = rows.project(body, timeout=timeout)
        code, said = project.run()
        assert code == 1, said
        (outcome,) = project.outcomes()
        if rows.is_gpu:
            assert outcome == ON_GPU[fault], (fault, outcome, said)
        rows.add(fault, how, f"`{outcome}`; exit code 1", rows.same(project))
        if "prints" in fault:
            size = (project.folder / "out/journal.jsonl").stat().st_size
            assert size < 16 << 20, f"a journal of {size} bytes"


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def kill_child(process, name):
    """Kills the child that runs this hidden command, as soon as there is one."""
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        for child in children(process.pid):
            try:
                if name in pathlib.Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(child, signal.SIGKILL)
                    return True
            except OSError:
                pass
    return False


def killed(rows, times):
    """Kills the worker of a run this many times while it checks one case. Returns the exit code and the project."""
    # Correct, but takes part of a second on the simulator.
    reads = "for (int k = 0; k < 10000; ++k)"
    slow = f"    float sum = 0;\n    {reads} sum += ((volatile const float *)in)[0];\n    if (sum < 0) out[0] = sum;\n"
    project = rows.project(slow + COPIES, timeout="60s")
    process = project.start_run("--progress", "json")
    for line in process.stderr:
        if times and '"case_active"' in line and '"faulty"' in line and '"checking"' in line:
            assert kill_child(process, b"__worker")
            times -= 1
    process.communicate()
    assert not times, "the case was not checked as often"
    return process.returncode, project


def processes(rows):
    code, project = killed(rows, 1)
    assert code == 0 and "crashed" not in project.outcomes(), (code, project.outcomes())
    rows.add("a worker is killed", "SIGKILL during a case", "the case runs again", rows.same(project))
    # On a GPU, the second kill may hit another case.
    if not rows.is_gpu:
        code, project = killed(rows, 2)
        assert code == 1 and "crashed" in project.outcomes(), (code, project.outcomes())
        rows.add("two workers are killed in one case", "SIGKILL, twice", "`crashed`; exit code 1", rows.same(project))

    for name, sent in [("SIGKILL", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)]:
        project = rows.project()
        process = project.start_run()
        journal = project.folder / "out/journal.jsonl"
        while process.poll() is None and not (journal.exists() and "case_settled" in journal.read_text(errors="replace")):
            time.sleep(0.005)
        process.send_signal(sent)
        process.communicate()
        code, said = project.run("--resume")
        assert code == 0, said
        outcome = "nothing is written to the report" if name == "SIGKILL" else "exit code 130, a report marked incomplete"
        rows.add(f"the run is ended by {name}", "in the middle", outcome, f"with `--resume` {rows.whole(project)}")


def journals(rows):
    def changed(change, words):
        project = rows.project()
        assert project.run()[0] == 0
        journal = project.folder / "out/journal.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        place = next(i for i, line in enumerate(lines) if '"case_counted"' in line or '"case_measured"' in line)
        journal.write_text("".join(change(lines, place)))
        code, said = project.call("report", "--from-journal", "out")
        assert words in said and code == 0, said
        code, said = project.run("--resume")
        assert code == 0 and words in said, said
        return rows.whole(project)

    def flip(lines, at):
        line = lines[at]
        middle = len(line) // 2
        return [*lines[:at], line[:middle] + chr(ord(line[middle]) ^ 1) + line[middle + 1:], *lines[at + 1:]]

    left = f"the results of all other groups; with `--resume` {changed(flip, 'journal.jsonl:')}"
    rows.add("a bit of the journal is flipped", "one bit in a line", "a warning with the line", left)
    for fault, change in [
        ("a line of the journal is missing", lambda lines, at: lines[:at] + lines[at + 1:]),
        ("a line of the journal is duplicated", lambda lines, at: lines[:at + 1] + lines[at:]),
        ("two lines of the journal are swapped", lambda lines, at: [*lines[:at], lines[at + 1], lines[at], *lines[at + 2:]]),
    ]:
        left = f"the results of all other groups; with `--resume` {changed(change, 'journal.jsonl:')}"
        rows.add(fault, "an editor", "a warning with the line", left)

    project = rows.project()
    assert project.run()[0] == 0
    journal = project.folder / "out/journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    code, said = project.run("--resume")
    assert code == 0, said
    rows.add("the last line of the journal is truncated", "20 bytes removed", "the line is ignored", f"with `--resume` {rows.whole(project)}")

    project = rows.project()
    assert project.run()[0] == 0
    records = project.folder / "out/records.jsonl"
    records.write_text(records.read_text().replace("copies", "cOpies", 1))
    code, said = project.call("report", "out")
    assert code == 3 and "records.jsonl:1" in said, said
    code, said = project.call("report", "--from-journal", "out")
    assert code == 0, said
    rows.add("a byte of the records changes", "an editor", "exit code 3, with the line", f"from the journal {rows.whole(project)}")


def machines(rows):
    project = rows.project()
    (project.folder / "out").write_text("a file")
    code, said = project.run()
    assert code == 3 and "is a file" in said, said
    rows.add("the folder of the report cannot be created", "a file in its place", "exit code 3, with the path", "nothing is written")

    def full(fault, how, limit, **env):
        project = rows.project()
        assert project.run()[0] == 0
        before = project.committed()
        files = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
        code, said = project.run(**files, env=dict(os.environ, **{k: str(project.folder / v) for k, v in env.items()}))
        assert code == 3, (code, said)
        assert project.committed() == before, "the old report changed"
        rows.add(fault, how, "exit code 3, with the path", "the report of the previous run, unchanged")

    full("the disk is full", "`ulimit -f` of 4 KB", 4096)

    project = rows.project()
    assert project.run()[0] == 0
    before = project.committed()
    (project.folder / "cache").write_text("a file")
    code, said = project.run(env=dict(os.environ, RUNNER_CACHE=str(project.folder / "cache")))
    assert code == 3 and "RUNNER_CACHE" in said, said
    assert project.committed() == before
    rows.add("the cache cannot be written", "a file in its place", "exit code 3, with the remedy",
             "the report of the previous run, unchanged")

    project = rows.project()
    assert project.run()[0] == 0
    slow = rows.project("    for (int k = 0; k < 20000; ++k) ((volatile float *)out)[0] = k;\n", timeout="60s")
    first = slow.start_run()
    while not (slow.folder / "out/journal.lock").exists() or not (slow.folder / "out/journal.lock").read_text():
        time.sleep(0.01)
    for again in (slow.run, lambda: slow.call("report", "--from-journal", "out")):
        code, said = again()
        assert code == 3 and "is in use by process" in said, said
    first.send_signal(signal.SIGTERM)
    first.send_signal(signal.SIGTERM)
    first.communicate()
    rows.add("a second process writes to the folder", "`run` and `report` during a run", "exit code 3, with the process",
             "the first run continues")


def strangers(rows):
    project = rows.project()
    assert project.run()[0] == 0
    theirs = project.folder / "theirs"
    theirs.mkdir()
    (theirs / "plot.svg").write_text("as it was")
    plots = project.folder / "out/plots"
    if plots.is_dir():
        subprocess.run(["rm", "-r", plots], check=True)
    plots.symlink_to(theirs)
    code, said = project.call("report", "out")
    assert code == 3 and "symbolic link" in said and os.listdir(theirs) == ["plot.svg"], said
    rows.add("a link leads out of a report's folder", "`plots` is a link", "exit code 3, with the path", "the link's target, unchanged")

    project = rows.project()
    project.write("../secret.cuh", "int secret;\n")
    project.write("kernels/copies.cu", '#include "../../secret.cuh"\n')
    code, said = project.run()
    assert code == 2 and "outside of the project" in said and "int secret" not in said, said
    rows.add("a source includes a file outside the project", '`#include "../../secret.cuh"`', "exit code 2, with the line of the manifest",
             "nothing is written")

    project = rows.project()
    os.remove(project.folder / "kernels/copies.cu")
    os.mkfifo(project.folder / "kernels/copies.cu")
    code, said = project.run()
    assert code == 2, said
    rows.add("a pipe in place of a source", "`mkfifo`", "exit code 2, with the line of the manifest", "nothing is written")


def table(runner, backend, parts):
    with tempfile.TemporaryDirectory() as folder:
        rows = Rows(runner, folder, backend)
        for part in parts:
            part(rows)
            print(f"{backend}, {part.__name__}: {len(rows.lines)} rows so far", file=sys.stderr)
    return TABLE + "\n".join(rows.lines) + "\n"


def has_gpu(runner):
    return subprocess.run([runner, "devices", "--json"], capture_output=True).returncode == 0


def main():
    runner = os.path.abspath(sys.argv[1])
    words = sys.argv[2:]
    checks = "--check" in words
    page = pathlib.Path(next((word for word in words if word != "--check"), PAGE))
    text = HEAD + table(runner, "sim", (kernels, processes, journals, machines, strangers))
    if has_gpu(runner):
        text += ON_A_GPU + table(runner, "cuda", (kernels, processes))
    elif page.exists():
        print("no GPU: its table is left as it is", file=sys.stderr)
        _, mark, of_gpu = page.read_text().partition(ON_A_GPU)
        text += mark + of_gpu
    if not checks:
        page.write_text(text)
    elif page.read_text() != text:
        sys.exit(f"{page} is not what the faults make:\n{text}")


main()
