// What it costs when the lanes of a warp part: the same loop, but with constants that differ from way to way, so that
// neither compiler nor assembler can turn a branch into a selection.
//
// Way k steps x to x * (8k + 5) + (2k + 1), modulo 2^32, `1 << doublings` times. Every kernel then undoes the steps of
// the way that it should have gone, by arithmetic alone and in a handful of instructions. So it writes its input back,
// and only if every thread went the right way.

__device__ __forceinline__ unsigned index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// The inverse of `1 << doublings` steps: the composed step a·x + b by repeated squaring, then a's inverse by Newton's
// iteration, which begins with three right bits and doubles them four times.
__device__ __forceinline__ unsigned undo(unsigned way, unsigned x, unsigned doublings)
{
    unsigned a = 8 * way + 5;
    unsigned b = 2 * way + 1;
    for (unsigned i = 0; i < doublings; ++i) {
        b = a * b + b;
        a = a * a;
    }
    unsigned inverse = a;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        inverse *= 2 - a * inverse;
    }
    return (x - b) * inverse;
}

template <unsigned Way>
__device__ __forceinline__ unsigned steps(unsigned x, unsigned doublings)
{
#pragma unroll 1
    for (unsigned i = 0; i < 1u << doublings; ++i) {
        x = x * (8 * Way + 5) + (2 * Way + 1);
    }
    return x;
}

// One loop a way, and each thread in one of them.
template <unsigned Way, unsigned Ways>
__device__ __forceinline__ unsigned branch(unsigned way, unsigned x, unsigned doublings)
{
    if constexpr (Way + 1 < Ways) {
        if (way != Way) {
            return branch<Way + 1, Ways>(way, x, doublings);
        }
    }
    return steps<Way>(x, doublings);
}

// Neighbours of Unit threads share a way: 1 parts the lanes of every warp, 32 gives each warp a way of its own.
template <unsigned Ways, unsigned Unit>
__global__ void diverge(const unsigned *input, unsigned *output, unsigned n, unsigned doublings)
{
    const unsigned i = index();
    if (i < n) {
        const unsigned way = i / Unit % Ways;
        output[i] = undo(way, branch<0, Ways>(way, input[i], doublings), doublings);
    }
}

// The cure where ways differ in data only: one loop, and constants for each thread.
template <unsigned Ways>
__global__ void converge(const unsigned *input, unsigned *output, unsigned n, unsigned doublings)
{
    const unsigned i = index();
    if (i < n) {
        const unsigned way = i % Ways;
        const unsigned a = 8 * way + 5;
        const unsigned b = 2 * way + 1;
        unsigned x = input[i];
#pragma unroll 1
        for (unsigned k = 0; k < 1u << doublings; ++k) {
            x = x * a + b;
        }
        output[i] = undo(way, x, doublings);
    }
}

// Every thread comes by every way, each instruction guarded by a predicate that holds on one of them: no branch, and none
// of the time is saved.
template <unsigned Way, unsigned Ways>
__device__ __forceinline__ void guarded_step(unsigned way, unsigned &x)
{
    asm volatile("{\n\t"
                 ".reg .pred mine;\n\t"
                 "setp.eq.u32 mine, %1, %2;\n\t"
                 "@mine mad.lo.u32 %0, %0, %3, %4;\n\t"
                 "}"
                 : "+r"(x)
                 : "r"(way), "n"(Way), "n"(8 * Way + 5), "n"(2 * Way + 1));
    if constexpr (Way + 1 < Ways) {
        guarded_step<Way + 1, Ways>(way, x);
    }
}

template <unsigned Ways>
__global__ void predicate(const unsigned *input, unsigned *output, unsigned n, unsigned doublings)
{
    const unsigned i = index();
    if (i < n) {
        const unsigned way = i % Ways;
        unsigned x = input[i];
#pragma unroll 1
        for (unsigned k = 0; k < 1u << doublings; ++k) {
            guarded_step<0, Ways>(way, x);
        }
        output[i] = undo(way, x, doublings);
    }
}

// Every second thread takes a branch and the others take none: they wait until it is done.
__global__ void one_way_or_none(const unsigned *input, unsigned *output, unsigned n, unsigned doublings)
{
    const unsigned i = index();
    if (i < n) {
        unsigned x = input[i];
        if (i % 2 == 0) {
            x = undo(0, steps<0>(x, doublings), doublings);
        }
        output[i] = x;
    }
}
