"""Compares two ways of choosing the finalists of a search with the same number of samples, on a measured space with simulated noise.

    python3 benches/halve_candidates.py reports/convolution/nvidia-h100-80gb-hbm3-tuned/search.json

`simple` is what `runner tune` does: a candidate gets seven samples, or two if both are above 1.25 times the best so far.
`halving` gives all candidates equally many samples in each round and drops the worse half, until five are left. The true times
are the medians in the file; a search has 178 correct configurations, half of them from the best tenth.
"""

import json
import random
import statistics
import sys

FINALISTS = 5
SEARCHES = 300


def simple(times, noise, draw):
    best, found, count = float("inf"), [], 0
    for time in times:
        samples = [time * (1 + draw.gauss(0, noise)) for _ in range(2)]
        if min(samples) <= 1.25 * best:
            samples += [time * (1 + draw.gauss(0, noise)) for _ in range(5)]
        count += len(samples)
        found.append(statistics.median(samples))
        best = min(best, found[-1])
    return sorted(range(len(times)), key=lambda place: found[place])[:FINALISTS], count


def halving(times, noise, draw, total):
    sizes, left = [], len(times)
    while left > FINALISTS:
        sizes.append(left)
        left = max(FINALISTS, left // 2)
    alive, samples = list(range(len(times))), {place: [] for place in range(len(times))}
    for done, _ in enumerate(sizes):
        each = max(1, int(total / (len(sizes) - done) / len(alive)))
        for place in alive:
            samples[place] += [times[place] * (1 + draw.gauss(0, noise)) for _ in range(each)]
        total -= each * len(alive)
        alive = sorted(alive, key=lambda place: statistics.median(samples[place]))[: max(FINALISTS, len(alive) // 2)]
    return alive


def main():
    results = [r for r in json.load(open(sys.argv[1]))["results"] if r["invalidity"] == "correct"]
    times = sorted(statistics.median(r["times"]["runtimes"]) for r in results)
    spread = []
    for samples in (r["times"]["runtimes"] for r in results if len(r["times"]["runtimes"]) >= 5):
        middle = statistics.median(samples)
        spread.append(1.4826 * statistics.median(abs(sample - middle) for sample in samples) / middle)
    sampled = sum(sum(r["times"]["runtimes"]) for r in results)
    evaluated = sum(r["times"]["benchmark"] for r in results)
    print(f"samples take {sampled / 1e3:.1f} s of the {evaluated / 1e3:.0f} s of all evaluations; their deviation is "
          f"{statistics.median(spread):.2%}, {sorted(spread)[len(spread) * 9 // 10]:.2%} at the 90th percentile")
    for noise in (0.003, 0.01, 0.03, 0.1):
        draw, hits, losses = random.Random(1), [0, 0], [0.0, 0.0]
        for _ in range(SEARCHES):
            search = draw.sample(times[: len(times) // 10], 89) + draw.sample(times, 89)
            draw.shuffle(search)
            first, count = simple(search, noise, draw)
            for way, chosen in enumerate((first, halving(search, noise, draw, count))):
                kept = min(search[place] for place in chosen)
                hits[way] += kept == min(search)
                losses[way] += kept / min(search) - 1
        print(f"noise {noise:.1%}: the best is a finalist in {hits[0]} (simple) and {hits[1]} (halving) of {SEARCHES}; "
              f"mean loss {losses[0] / SEARCHES:.3%} and {losses[1] / SEARCHES:.3%}")


if __name__ == "__main__":
    main()
