"""Works out what every lane must hold in `warp_primitives` and `cooperative_groups`, and what `nested_hello` must print,
from the descriptions alone.

Writes the .npy and .txt files beside it; needs nothing but Python 3.
"""

import struct
from pathlib import Path


def value_of(thread):
    return 3 * thread * thread + 5


def bits(lanes):
    return sum(1 << lane for lane in lanes)


def signed(word):
    return (word & 0xFFFFFFFF) - ((word & 0x80000000) << 1)


def save(name, rows, threads):
    header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(rows)}, {threads}), }}"
    header = header.ljust((len(header) + 10) // 64 * 64 + 64 - 11) + "\n"
    data = b"".join(struct.pack(f"<{threads}i", *map(signed, row)) for row in rows)
    path = Path(__file__).parent / name
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    print(f"{name}: {len(rows)} rows of {threads}")


# ---- The primitives of a warp, two warps of 32. A row is a function of warp and lane. ----


def warp_primitives():
    rows = []

    def row(of):
        rows.append([of(thread // 32, thread % 32) for thread in range(64)])

    lanes = range(32)
    odd = [lane for lane in lanes if lane % 2 == 1]
    predicates = [lambda w, l: l % 3 == 1, lambda w, l: w == 1, lambda w, l: True, lambda w, l: False]
    for p in predicates:
        row(lambda w, l: bits(i for i in lanes if p(w, i)))
        row(lambda w, l: all(p(w, i) for i in lanes))
        row(lambda w, l: any(p(w, i) for i in lanes))
    row(lambda w, l: bits(i for i in odd if i % 3 == 1) if l in odd else -1)
    row(lambda w, l: 1 if l in odd else -1)
    row(lambda w, l: 0 if l in odd else -1)

    def side(l):
        return [i for i in lanes if i % 2 == l % 2]

    row(lambda w, l: bits(i for i in side(l) if i < 20))
    row(lambda w, l: all(i < 31 for i in side(l)))
    row(lambda w, l: any(i == 31 for i in side(l)))
    row(lambda w, l: 1 << 17 if l == 17 else -1)
    row(lambda w, l: 0 if l == 17 else -1)
    row(lambda w, l: 1 if l == 17 else -1)

    def of_lane(w, l):
        return value_of(32 * w + l)

    for width in [2, 4, 8, 16, 32]:
        for source in [0, 1, width - 1, width + 1]:
            # A source past the group's end wraps within the group.
            row(lambda w, l: of_lane(w, l - l % width + source % width))
        for delta in [0, 1, 2, width - 1, width]:
            # Past an end of the group a lane keeps its own.
            row(lambda w, l: of_lane(w, l - delta if l % width >= delta else l))
            row(lambda w, l: of_lane(w, l + delta if l % width + delta < width else l))
        for mask in [1, 2, width // 2, width - 1, 31]:
            # Groups before the own one can be read, those behind it cannot.
            row(lambda w, l: of_lane(w, l ^ mask if (l ^ mask) // width <= l // width else l))

    row(lambda w, l: of_lane(w, 5) if l in odd else -1)
    row(lambda w, l: of_lane(w, l ^ 6) if l in odd else -1)
    row(lambda w, l: of_lane(w, l - 2 if l >= 2 else l) if l in odd else -1)
    row(lambda w, l: of_lane(w, l + 2 if l < 30 else l) if l in odd else -1)
    row(lambda w, l: of_lane(w, l ^ 2) if l in odd else -1)
    row(lambda w, l: of_lane(w, l + 4 if l % 8 < 4 else l) if l in odd else -1)

    row(lambda w, l: of_lane(w, (7 * l + 3) % 32))
    row(lambda w, l: of_lane(w, l - l % 16 + l // 2 % 16))
    row(lambda w, l: of_lane(w, 31))
    row(lambda w, l: of_lane(w, l - l % 8 + 7))
    row(lambda w, l: 3)
    row(lambda w, l: l)

    row(lambda w, l: -1 if l >= 16 else of_lane(w, l - 2 if l % 8 >= 2 else l))
    row(lambda w, l: -1 if l >= 16 else of_lane(w, l + 2 if l % 8 < 6 else l))
    def words(pattern):
        """The words of a value, the lower first, as a function of the integer that it was made of."""
        size = len(pattern(0)) // 4
        return [lambda v, k=k: struct.unpack_from("<i", pattern(v), 4 * k)[0] for k in range(size)]

    for pattern in [
        lambda v: struct.pack("<I", v | 0x80000000),
        lambda v: struct.pack("<Ii", ~v & 0xFFFFFFFF, v),
        lambda v: struct.pack("<f", v / 4),
        lambda v: struct.pack("<d", v / 4),
    ]:
        for source in [
            lambda l: 9,
            lambda l: l - 3 if l >= 3 else l,
            lambda l: l + 3 if l % 16 < 13 else l,
            lambda l: l ^ 5,
        ]:
            for word in words(pattern):
                row(lambda w, l: word(of_lane(w, source(l))))

    row(lambda w, l: bits(i for i in lanes if i % 5 == l % 5))
    row(lambda w, l: bits(i for i in lanes if (32 * w + i) // 7 == (32 * w + l) // 7))
    row(lambda w, l: bits(lanes))
    row(lambda w, l: 1)
    row(lambda w, l: 0)
    row(lambda w, l: 0)
    row(lambda w, l: bits(i for i in lanes if i % 3 == l % 3))
    row(lambda w, l: bits(i for i in lanes if i // 8 == l // 8))
    row(lambda w, l: bits(i for i in odd if i % 5 == l % 5) if l in odd else -1)
    row(lambda w, l: bits(odd) if l in odd else -1)
    row(lambda w, l: 1 if l in odd else -1)
    row(lambda w, l: 0 if l in odd else -1)

    def whole(w):
        return [of_lane(w, i) for i in lanes]

    def fold(join, values):
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return result

    row(lambda w, l: sum(whole(w)))
    row(lambda w, l: min(100 - v for v in whole(w)))
    row(lambda w, l: max(100 - v for v in whole(w)))
    row(lambda w, l: fold(lambda a, b: a & b, [v | 0x100 for v in whole(w)]))
    row(lambda w, l: fold(lambda a, b: a | b, whole(w)))
    row(lambda w, l: fold(lambda a, b: a ^ b, whole(w)))
    row(lambda w, l: sum(of_lane(w, i) for i in odd) if l in odd else -1)
    row(lambda w, l: -1)
    row(lambda w, l: -1)
    row(lambda w, l: min(v for i, v in enumerate(whole(w)) if i != 3))

    row(lambda w, l: of_lane(w, 31 - l))
    row(lambda w, l: -of_lane(w, l ^ 2) if l in odd else -1)
    row(lambda w, l: 2 * of_lane(w, l ^ 15 if l < 16 else l ^ 8))
    save("warp_primitives.npy", rows, 64)


def sixteen_threads():
    rows = []

    def row(of):
        rows.append([of(thread) for thread in range(16)])

    for width in [2, 4, 8, 16]:
        row(lambda t: value_of(t - t % width + width - 1))
        row(lambda t: value_of(t - 2 if t % width >= 2 else t))
        row(lambda t: value_of(t + 2 if t % width + 2 < width else t))
        row(lambda t: value_of(t ^ (width - 1)))
    row(lambda t: bits(i for i in range(16) if i % 3 == 1))
    row(lambda t: 1)
    row(lambda t: 0)
    row(lambda t: sum(value_of(i) for i in range(16)))
    save("sixteen_threads.npy", rows, 16)


# ---- Cooperative groups, 2 × 2 blocks of 16 × 4 threads. A row is a function of block and rank in it. ----


def cooperative_groups():
    rows = []

    def row(of):
        rows.append([of(thread // 64, thread % 64) for thread in range(256)])

    def of(b, r):
        return value_of(64 * b + r)

    row(lambda b, r: b % 2)
    row(lambda b, r: b // 2)
    row(lambda b, r: r % 16)
    row(lambda b, r: r // 16)
    row(lambda b, r: r)
    row(lambda b, r: 64)
    row(lambda b, r: 0)
    row(lambda b, r: 1641)
    row(lambda b, r: of(b, 63 - r))

    for size in [1, 2, 4, 8, 16, 32]:

        def mates(r):
            return range(r - r % size, r - r % size + size)

        row(lambda b, r: r % size)
        row(lambda b, r: size)
        row(lambda b, r: r // size)
        row(lambda b, r: 64 // size)
        row(lambda b, r: bits(i for i in range(size) if i % 3 == 1))
        row(lambda b, r: all(of(b, i) % 2 == 1 for i in mates(r)))
        row(lambda b, r: any(of(b, i) % 7 == 0 for i in mates(r)))
        row(lambda b, r: of(b, mates(r)[-1]))
        row(lambda b, r: of(b, r - 1 if r % size > 0 else r))
        row(lambda b, r: of(b, r + 1 if r % size < size - 1 else r))
        row(lambda b, r: of(b, r ^ (size - 1)))
        row(lambda b, r: of(b, mates(r)[size // 2]))
        row(lambda b, r: of(b, mates(r)[(3 * (r % size) + 1) % size]))
        row(lambda b, r: of(b, r - 2 if r % size >= 2 else r))
        row(lambda b, r: of(b, r + 2 if r % size + 2 < size else r))
        row(lambda b, r: of(b, r ^ (size // 2)))
        row(lambda b, r: 0)
        row(lambda b, r: 1)
        row(lambda b, r: bits(i for i in range(size) if i // 3 == r % size // 3))
        row(lambda b, r: sum(of(b, i) for i in mates(r)))
        row(lambda b, r: max(of(b, i) for i in mates(r)))
        row(lambda b, r: of(b, mates(r)[size - 1 - r % size]))

    row(lambda b, r: 32)
    row(lambda b, r: r % 32)
    row(lambda b, r: 4)
    row(lambda b, r: r % 4)
    row(lambda b, r: of(b, 63 - r))
    row(lambda b, r: of(b, r - r % 32 + 31 - r % 32))
    row(lambda b, r: of(b, r - r % 4 + 3 - r % 4))
    row(lambda b, r: r % 4)
    row(lambda b, r: r % 32 // 4)
    row(lambda b, r: 8)

    here = [lane for lane in range(32) if lane % 3 == 1]
    row(lambda b, r: len(here) if r % 32 in here else -1)
    row(lambda b, r: here.index(r % 32) if r % 32 in here else -1)

    def among(of_rank):
        """A row of those who are here, by their rank."""
        row(lambda b, r: of_rank(b, r - r % 32, here.index(r % 32)) if r % 32 in here else -1)

    count = len(here)
    among(lambda b, warp, k: of(b, warp + here[0]))
    among(lambda b, warp, k: sum(of(b, warp + lane) for lane in here))
    among(lambda b, warp, k: bits(i for i in range(count) if i % 2 == 1))
    among(lambda b, warp, k: 1)
    among(lambda b, warp, k: 0)
    among(lambda b, warp, k: of(b, warp + here[k - 1 if k >= 1 else k]))
    among(lambda b, warp, k: of(b, warp + here[k + 2 if k + 2 < count else k]))
    among(lambda b, warp, k: of(b, warp + here[(k + 3) % count]))
    among(lambda b, warp, k: bits(i for i in range(count) if i // 4 == k // 4))
    among(lambda b, warp, k: of(b, warp + here[count - 1 - k]))

    row(lambda b, r: 11 if r % 32 < 11 else 21)
    row(lambda b, r: r % 32 if r % 32 < 11 else r % 32 - 11)
    row(lambda b, r: of(b, r - r % 32 + (10 if r % 32 < 11 else 21)))
    row(lambda b, r: len([lane for lane in range(32) if lane % 5 == r % 32 % 5]))
    row(lambda b, r: r % 32 // 5)
    row(lambda b, r: of(b, r - r % 32 + r % 32 % 5 + 5))

    row(lambda b, r: 1)
    row(lambda b, r: 64 * b + r)
    row(lambda b, r: 256)
    row(lambda b, r: b)
    row(lambda b, r: 4)
    row(lambda b, r: value_of(255 - (64 * b + r)))
    save("cooperative_groups.npy", rows, 256)


# ---- Grids that launch grids. A line is what one thread prints. ----


def save_lines(name, lines):
    (Path(__file__).parent / name).write_text("".join(line + "\n" for line in lines))
    print(f"{name}: {len(lines)} lines")


def nested_hello():
    for threads in [1, 8, 64]:
        lines, depth, width = [], 0, threads
        while width >= 1:
            lines += [f"depth {depth}: hello from thread {thread} of {width}" for thread in range(width)]
            if width > 1:
                lines.append(f"depth {depth}: launched a grid of {width // 2} threads")
            depth, width = depth + 1, width // 2
        save_lines(f"nested_hello_halves_{threads}.txt", lines)
    for last in [1, 3, 7]:
        # Two blocks a grid, each of which launches one: twice the grids a depth.
        lines = [f"depth {d}: block {block} launched" for d in range(last) for block in [0, 1] for _ in range(2**d)]
        save_lines(f"nested_hello_tree_{last}.txt", lines)


if __name__ == "__main__":
    warp_primitives()
    sixteen_threads()
    cooperative_groups()
    nested_hello()
