"""Searches the space of experiments/convolution.toml with an installed Kernel Tuner on this machine's GPU, and prints each improvement.

    python3 -m venv /tmp/kt && /tmp/kt/bin/pip install kernel_tuner==1.5.0 cupy-cuda13x 'ray==2.49.0'
    /tmp/kt/bin/python benches/search_kernel_tuner.py simulated_annealing --seed 1
    /tmp/kt/bin/python benches/search_kernel_tuner.py genetic_algorithm --seed 1 --workers 16

Prints a line for each improvement: the seconds since the search began, the best time so far in ms, and its configuration. A result
counts only if it is correct. Workers need two changes to version 1.5.0. One is made here: strategy modules are looked up in a list of
names. The other is in runners/parallel.py: `result.get(objective)` must be `result.get(objective[0])`, since `objective` is a list. All
workers share one GPU, which Ray would not allow by default.
"""

import argparse
import json
import os
import random
import tempfile
import threading
import time
from pathlib import Path

import kernel_tuner
import kernel_tuner.interface
import numpy

SIZE = 4096
TAPS = 15
PARAMETERS = {
    "block_size_x": list(range(16, 257, 16)),
    "block_size_y": [1, 2, 4, 8, 16],
    "tile_size_x": [1, 2, 3, 4],
    "tile_size_y": [1, 2, 3, 4],
    "read_only": [0, 1],
    "use_padding": [0, 1],
    "use_shmem": [0, 1],
}
RESTRICTIONS = [
    "not (use_padding == 1 and block_size_x % 32 == 0)",
    "not (use_padding == 1 and use_shmem == 0)",
    "block_size_x * block_size_y <= 1024",
    "not (use_shmem == 1 and (block_size_x * tile_size_x + 14) * (block_size_y * tile_size_y + 14) >= 12 * 1024)",
]
# Kernel Tuner calls a kernel by its name. So a kernel that is not a template calls the template, with macros as arguments.
ENTRY = f"""
extern "C" __global__ void convolve(float* out, const float* image, int width, int height)
{{
    body<{", ".join(PARAMETERS)}>(out, image, width, height);
}}
"""


def read_source():
    path = Path(__file__).parent.parent / "kernels" / "convolution.cu"
    return path.read_text().replace("__global__ void convolve(", "__device__ __forceinline__ void body(") + ENTRY


def draw_inputs():
    """Returns an image, a filter, and their convolution computed in f64."""
    generator = numpy.random.default_rng(1)
    image = generator.random((SIZE, SIZE), dtype=numpy.float32)
    taps = generator.random((TAPS, TAPS), dtype=numpy.float32) * numpy.float32(0.01)
    padded = numpy.pad(image.astype(numpy.float64), TAPS // 2)
    expected = numpy.zeros((SIZE, SIZE))
    for row in range(TAPS):
        for column in range(TAPS):
            expected += padded[row : row + SIZE, column : column + SIZE] * float(taps[row, column])
    return image.ravel(), taps.ravel(), expected.astype(numpy.float32).ravel()


def follow(cache, began, ended):
    """Reports the results in the cache file as Kernel Tuner writes them."""
    best, place = float("inf"), 0
    while True:
        last = ended.is_set()
        text = cache.read_text() if cache.exists() else ""
        for line in text[place:].splitlines(keepends=True):
            if not line.endswith("\n") and not last:
                break
            place += len(line)
            if line.startswith('"') and '"time":' in line:
                result, _ = json.JSONDecoder().raw_decode(line, line.index("{"))
                best = report(result, began, best)
        if last:
            return
        time.sleep(0.2)


def report(result, began, best):
    """Prints a result that is better than the best so far; returns the better of the two."""
    took = result["time"]
    if not isinstance(took, float) or took >= best:
        return best
    print(f"{time.time() - began:7.1f} s  {took:.5f} ms  {[result[name] for name in PARAMETERS]}", flush=True)
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("strategy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="workers of Ray; 1 is without Ray")
    parser.add_argument("--budget", type=int, default=218)
    arguments = parser.parse_args()
    image, taps, expected = draw_inputs()
    began = time.time()
    if arguments.workers > 1:
        import ray

        os.environ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"] = "1"
        ray.init(num_cpus=arguments.workers, num_gpus=arguments.workers, include_dashboard=False, log_to_driver=False)
        interface = kernel_tuner.interface
        interface._STRATEGY_PARALLEL = [interface.strategy_map[name] for name in interface._STRATEGY_PARALLEL]
    random.seed(arguments.seed)
    numpy.random.seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        cache, ended = Path(folder) / "cache.json", threading.Event()
        follower = threading.Thread(target=follow, args=(cache, began, ended))
        follower.start()
        try:
            kernel_tuner.tune_kernel(
                "convolve",
                read_source(),
                (SIZE, SIZE),
                [numpy.zeros(SIZE * SIZE, numpy.float32), image, numpy.int32(SIZE), numpy.int32(SIZE)],
                PARAMETERS,
                grid_div_x=["block_size_x", "tile_size_x"],
                grid_div_y=["block_size_y", "tile_size_y"],
                answer=[expected, None, None, None],
                atol=2e-5,
                cmem_args={"taps": taps},
                restrictions=RESTRICTIONS,
                lang="CUPY",
                compiler_options=["-std=c++17"],
                strategy=arguments.strategy,
                strategy_options={"max_fevals": arguments.budget},
                cache=str(cache),
                quiet=True,
                parallel=arguments.workers if arguments.workers > 1 else None,
                seed=arguments.seed,
            )
        finally:
            ended.set()
            follower.join()
    print(f"{time.time() - began:7.1f} s  ended")


if __name__ == "__main__":
    main()
