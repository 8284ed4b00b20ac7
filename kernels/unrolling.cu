// Unrolling, from one block's worth of elements per block to sixteen, and the gain from writing the last steps out.
//
// Blocks reduce their stretch of `data` in place and leave one sum each in `partial`. Every kernel is right for any n;
// blocks are powers of two from 64.

#include "reduction_in_place.cuh"

// More than one block's worth into the first.
template <unsigned Factor>
__device__ __forceinline__ void gather_more(int *data, unsigned first, unsigned n)
{
    if (Factor > 1) {
        gather<int, Factor>(data, first, n);
    }
}

// One step of the fold. A whole block skips the question whether the partner is there.
template <bool Whole>
__device__ __forceinline__ void step(int *block, unsigned half, unsigned live)
{
    if (threadIdx.x < half && (Whole || threadIdx.x + half < live)) {
        block[threadIdx.x] = plus(block[threadIdx.x], block[threadIdx.x + half]);
    }
    __syncthreads();
}

// A loop over the steps.
template <unsigned Factor>
__global__ void loop(int *data, int *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x * Factor;
    const unsigned live = min(blockDim.x, n - first);
    int *block = data + first;

    gather_more<Factor>(data, first, n);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        step<false>(block, half, live);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// The steps of one warp, without barriers of the block.
__device__ __forceinline__ void warp_steps(int *block)
{
    if (threadIdx.x < 32) {
        volatile int *values = block;
        int mine = values[threadIdx.x];
#pragma unroll
        for (unsigned half = 32; half > 0; half /= 2) {
            mine = plus(mine, values[threadIdx.x + half]);
            __syncwarp();
            values[threadIdx.x] = mine;
            __syncwarp();
        }
    }
}

// The steps written out down to the last warp; Size is the block's, or 0 to ask for it at run time.
template <unsigned Factor, unsigned Size>
__global__ void complete(int *data, int *partial, unsigned n)
{
    const unsigned size = Size == 0 ? blockDim.x : Size;
    const unsigned first = blockIdx.x * size * Factor;
    const unsigned live = min(size, n - first);
    int *block = data + first;

    gather_more<Factor>(data, first, n);
    if (live == size) {
        if (size >= 1024) step<true>(block, 512, live);
        if (size >= 512) step<true>(block, 256, live);
        if (size >= 256) step<true>(block, 128, live);
        if (size >= 128) step<true>(block, 64, live);
        warp_steps(block);
    } else {
        for (unsigned half = size / 2; half > 0; half /= 2) {
            step<false>(block, half, live);
        }
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}
