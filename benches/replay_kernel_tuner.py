"""Replays the strategies of an installed Kernel Tuner on a measured space, and prints the score of each.

    python3 -m venv /tmp/kt && /tmp/kt/bin/pip install kernel_tuner==1.5.0
    /tmp/kt/bin/python benches/replay_kernel_tuner.py convolution.csv a100_ms --searches 100

The table has a column for each parameter and columns of times, whose names end in `_ms`; an empty time means that the
configuration failed. The score is defined as for `runner tune --simulate`: docs/explanation/search.md.
"""

import argparse
import contextlib
import csv
import io
import json
import math
import random
import tempfile
from pathlib import Path

import kernel_tuner
import numpy
from kernel_tuner.runners.simulation import SimulationRunner

STRATEGIES = "adaptive_tabu_greywolf,genetic_algorithm,simulated_annealing,pso,firefly_algorithm,diff_evo,hybrid_vndx,random_sample"
FAILED = "RuntimeFailedConfig"


def read(path, column):
    """Returns the names of the parameters, and the time of each configuration; None if it failed."""
    rows = list(csv.DictReader(path.open()))
    names = [name for name in rows[0] if not name.endswith("_ms")]
    return names, {tuple(int(row[name]) for name in names): float(row[column]) if row[column] else None for row in rows}


def write_cache(path, names, times):
    """Writes the times as a Kernel Tuner cache, which its simulation mode reads."""
    entries = {}
    for values, time in times.items():
        entry = dict(zip(names, values), time=time or FAILED, times=[time] if time else [], compile_time=1.0, verification_time=0)
        entry |= {"benchmark_time": 1.0, "strategy_time": 0, "framework_time": 0} | ({} if time else {"__error__": FAILED})
        entries[",".join(map(str, values))] = entry
    params = {name: sorted({values[place] for values in times}) for place, name in enumerate(names)}
    head = {"device_name": "Simulation", "kernel_name": "k", "problem_size": [1, 1], "tune_params_keys": names}
    path.write_text(json.dumps(head | {"tune_params": params, "objective": "time", "cache": entries}))
    return params


def search(strategy, seed, budget, cache, params, times):
    """Returns the times of the configurations that a search evaluates, in order, each once."""
    random.seed(seed)
    numpy.random.seed(seed)
    seen = []
    plain = SimulationRunner.run

    def is_valid(params):
        return tuple(params.values()) in times

    def run(self, space, options):
        results = []
        for values in space:
            before = len(self.visited_results)
            results += plain(self, [values], options)
            if len(self.visited_results) > before:
                seen.append(times[tuple(int(value) for value in values)])
        return results

    SimulationRunner.run = run
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            kernel_tuner.tune_kernel(
                "k", "void k(){}", (1, 1), [], params, restrictions=is_valid, lang="C", quiet=True,
                strategy=strategy, strategy_options={"max_fevals": budget}, cache=str(cache), simulation_mode=True)
    finally:
        SimulationRunner.run = plain
    return seen


def budget_of(worst_first):
    """Returns the number of evaluations after which random search is expected to be within 5 % of the optimum.

    The percentage is of the distance from the median to the optimum."""
    count, best = len(worst_first), worst_first[-1]
    cutoff = best + (worst_first[::-1][count // 2] - best) * 0.05
    index = next(place for place, time in enumerate(worst_first, 1) if time <= cutoff)
    return math.ceil(index / (count + 1 - index))


def score(worst_first, budget, searches):
    """Returns how far the searches are from random search to the optimum, as the mean over 50 points in time."""
    count, best, total = len(worst_first), worst_first[-1], 0
    for step in range(1, 51):
        at = budget * step / 50
        found = [min((time for time in times[: int(at)] if time), default=worst_first[0]) for times in searches]
        index = round(at * (count + 1) / (at + 1))
        expected = worst_first[min(max(index, 1), count) - 1]
        mean = sum(found) / len(found)
        total += (expected - mean) / (expected - best) if expected > best else float(mean <= best)
    return total / 50


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("column")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--searches", type=int, default=20)
    args = parser.parse_args()
    names, times = read(args.table, args.column)
    worst_first = sorted(filter(None, times.values()), reverse=True)
    budget, near = budget_of(worst_first), max(1, len(times) * 5 // 100)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        params = write_cache(cache, names, times)
        print("| strategy | within 1 % | score |\n|---|---:|---:|")
        for strategy in args.strategies.split(","):
            searches = [search(strategy, seed, max(budget, near), cache, params, times) for seed in range(args.searches)]
            found = sum(any(time and time <= worst_first[-1] * 1.01 for time in each[:near]) for each in searches)
            print(f"| {strategy} | {found} of {len(searches)} | {score(worst_first, budget, searches):.3f} |", flush=True)


main()
