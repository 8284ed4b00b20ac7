"""A small project whose runs take a second on the simulator, and readers for its reports."""

import csv
import os
import pathlib
import shutil
import subprocess

SIZES = [64, 128, 256, 512]

MANIFEST = """[experiment]
name = "x"
baseline = "copies"

[axes]
n = %(sizes)s

[buffers.input]
type = "f32"
len  = "n"
fill = { uniform = [0, 1] }

[buffers.output]
type = "f32"
len  = "n"

[[check]]
actual = "output"
expect = "input"

[measure]
timeout = "%(timeout)s"

[[variant]]
name   = "copies"
source = "copies.cu"
kernel = "copies"
grid   = ["ceil_div(n, 32)"]
block  = [32]
args   = ["input", "output", "u32(n)"]

[[variant]]
name   = "too"
source = "copies.cu"
kernel = "too"
grid   = ["ceil_div(n, 64)"]
block  = [64]
args   = ["input", "output", "u32(n)"]
"""

VARIANT = """
[[variant]]
name   = "faulty"
source = "faulty.cu"
kernel = "faulty"
grid   = ["ceil_div(n, 32)"]
block  = [32]
args   = ["input", "output", "u32(n)"]
"""

HEAD = 'extern "C" __global__ void %s(const float *in, float *out, unsigned n) {\n'
COPIES = "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) out[i] = in[i];\n"
COPY = HEAD + COPIES + "}\n"

# Files of a report that are committed.
COMMITTED = ["report.md", "results.csv", "records.jsonl", "environment.json"]


class Project:
    """A folder with a manifest and kernels; `faulty` is the body of a third kernel."""

    def __init__(self, folder, runner, faulty=None, timeout="10s", backend="sim"):
        self.folder = pathlib.Path(folder)
        self.runner, self.backend = runner, backend
        shutil.rmtree(self.folder, ignore_errors=True)
        text = MANIFEST % {"sizes": SIZES, "timeout": timeout}
        self.write("experiments/x.toml", text + (VARIANT if faulty else ""))
        self.write("kernels/copies.cu", COPY % "copies" + COPY % "too")
        if faulty:
            self.write("kernels/faulty.cu", HEAD % "faulty" + faulty + "}\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def command(self, *words):
        return [self.runner, "--color", "never", *map(str, words)]

    def start(self, *words, **more):
        return subprocess.Popen(
            self.command(*words), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more
        )

    def call(self, *words, **more):
        """Exit code and output."""
        done = subprocess.run(
            self.command(*words), cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=300, **more
        )
        return done.returncode, done.stdout + done.stderr

    def run_words(self, *words):
        return ["run", "experiments/x.toml", "--backend", self.backend, "--out", "out", *words]

    def start_run(self, *words, **more):
        return self.start(*self.run_words(*words), **more)

    def run(self, *words, **more):
        return self.call(*self.run_words(*words), **more)

    def committed(self):
        """Content of each file of the report."""
        names = COMMITTED + sorted(os.listdir(self.folder / "out/plots") if (self.folder / "out/plots").is_dir() else [])
        return {name: (self.folder / "out" / (name if name in COMMITTED else f"plots/{name}")).read_bytes()
                for name in names}

    def rows(self):
        """Rows of the correct variants."""
        with open(self.folder / "out/results.csv") as file:
            return [row for row in csv.DictReader(file) if row["variant"] in ("copies", "too")]

    def outcomes(self, variant="faulty"):
        """Distinct outcomes of a variant's cases."""
        with open(self.folder / "out/results.csv") as file:
            return sorted({row["outcome"] for row in csv.DictReader(file) if row["variant"] == variant})
