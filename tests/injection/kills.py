"""Kills or signals a run at random moments, resumes it, and compares its report with that of an undisturbed run.

    python3 tests/injection/kills.py RUNNER [KILLS] [SIGNALS]
"""

import random
import shutil
import signal
import sys
import tempfile
import time

from project import Project


def main():
    runner, kills, signals = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["200", "100"])[:2])
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder + "/p", runner)
        code, said = project.run()
        assert code == 0, said
        expected = project.committed()
        begin = time.monotonic()
        project.run()
        took = time.monotonic() - begin
        assert project.committed() == expected, "two undisturbed runs differ"
        for what, count in [("kill", kills), ("signal", signals)]:
            sent = reports = 0
            while sent < count:
                shutil.rmtree(project.folder / "out", ignore_errors=True)
                options = []
                # Resumed runs are interrupted too, until one ends by itself.
                while True:
                    words = ["run", "experiments/x.toml", "--backend", "sim", "--out", "out", *options]
                    process = project.start(*words)
                    time.sleep(random.uniform(0, took))
                    if process.poll() is None:
                        sent += 1
                        kind = signal.SIGKILL if what == "kill" else random.choice([signal.SIGTERM, signal.SIGHUP])
                        process.send_signal(kind)
                    process.communicate()
                    if process.returncode == 0:
                        break
                    assert process.returncode in (-9, 130, -signal.SIGHUP, -signal.SIGTERM), process.returncode
                    options = ["--resume"]
                found = project.committed()
                different = [name for name in expected if found.get(name) != expected[name]]
                assert found.keys() == expected.keys() and not different, f"{what} {sent}: {different} differ"
                left = [path.name for path in (project.folder / "out").rglob(".writing-*")]
                assert not left, f"{what} {sent} left {left}"
                reports += 1
            print(f"{sent} times a {what} at a random moment of {took:.1f} s, then --resume: {reports} reports, all byte-identical")


main()
