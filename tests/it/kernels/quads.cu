// Values of 128 bits: two words that change together.

#include <cuda/std/climits>

struct alignas(16) Pair {
    long long value, at;
};

__device__ Pair load(const Pair *from)
{
    Pair p;
    asm volatile("{ .reg .b128 q; ld.relaxed.gpu.global.b128 q, [%2]; mov.b128 {%0, %1}, q; }"
                 : "=l"(p.value), "=l"(p.at)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return p;
}

__device__ Pair compare_and_swap(Pair *to, Pair expected, Pair wanted)
{
    Pair old;
    asm volatile("{ .reg .b128 e, w, o; mov.b128 e, {%2, %3}; mov.b128 w, {%4, %5};"
                 "  atom.relaxed.gpu.global.cas.b128 o, [%6], e, w; mov.b128 {%0, %1}, o; }"
                 : "=l"(old.value), "=l"(old.at)
                 : "l"(expected.value), "l"(expected.at), "l"(wanted.value), "l"(wanted.at),
                   "l"(__cvta_generic_to_global(to))
                 : "memory");
    return old;
}

__device__ bool better(Pair a, Pair b)
{
    return a.value > b.value || (a.value == b.value && a.at < b.at);
}

// The largest value and where it stands first.
extern "C" __global__ void largest(const long long *in, int n, Pair *best)
{
    Pair mine = {LLONG_MIN, LLONG_MAX};
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
        Pair here = {in[k], k};
        if (better(here, mine))
            mine = here;
    }
    Pair seen = load(best);
    while (better(mine, seen)) {
        Pair was = compare_and_swap(best, seen, mine);
        if (was.value == seen.value && was.at == seen.at)
            break;
        seen = was;
    }
}

// Each thread of a block leaves a pair where another has left one, and takes that.
extern "C" __global__ void relay(Pair *out)
{
    __shared__ Pair slot;
    if (threadIdx.x == 0)
        slot = {-1, 1};
    __syncthreads();
    long long value = threadIdx.x, square = value * value;
    Pair old;
    asm volatile("{ .reg .b128 w, o; mov.b128 w, {%2, %3}; atom.shared.exch.b128 o, [%4], w; mov.b128 {%0, %1}, o; }"
                 : "=l"(old.value), "=l"(old.at)
                 : "l"(value), "l"(square), "r"((unsigned)__cvta_generic_to_shared(&slot))
                 : "memory");
    out[blockIdx.x * (blockDim.x + 1) + threadIdx.x] = old;
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x * (blockDim.x + 1) + blockDim.x] = slot;
}
