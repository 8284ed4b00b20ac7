// Sums whose levels are grids that kernels launch, beside the flat kernels that they compete with.
//
// A level adds the upper half of every stretch of elements to its lower half, in place. Since CUDA 12 a kernel cannot
// wait for what it has launched, so what must follow a level is launched to follow it: in the tail stream, which begins
// when the whole grid has ended, or in the block's own stream behind a barrier of the block. Every kernel is right for
// any n; blocks are powers of two.

#include "reduce.cu"

// One level of a stretch of `2 * half` elements, of which the first `live` are there.
__device__ __forceinline__ void level(int *stretch, unsigned half, unsigned live)
{
    if (threadIdx.x + half < live) {
        stretch[threadIdx.x] = plus(stretch[threadIdx.x], stretch[threadIdx.x + half]);
    }
}

// Where a child waits for what its parent's block writes.
enum Follow {
    // In the block's own stream, behind a barrier: a launch publishes the writes that come before it, and the barrier lets the
    // child see what the block's other threads have written.
    BEHIND_A_BARRIER,
    // In the tail stream: it begins when the whole grid has ended, and sees all of it.
    IN_THE_TAIL,
};

// Every block goes on for itself: one child of one block, half as many threads, level after level.
template <Follow How>
__global__ void every_block(int *data, int *partial, unsigned n)
{
    const unsigned half = blockDim.x;
    const unsigned first = blockIdx.x * 2 * half;
    const unsigned live = min(2 * half, n - first);
    int *stretch = data + first;

    level(stretch, half, live);
    if (half == 1) {
        partial[blockIdx.x] = stretch[0];
        return;
    }
    if (How == BEHIND_A_BARRIER) {
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const cudaStream_t stream = How == IN_THE_TAIL ? cudaStreamTailLaunch : nullptr;
        every_block<How><<<1, half / 2, 0, stream>>>(stretch, partial + blockIdx.x, min(half, live));
    }
}

// One level of all stretches, `span` elements apart, of which the first `2 * blockDim.x` are left.
__device__ __forceinline__ void level_of_all(int *data, int *partial, unsigned n, unsigned span)
{
    const unsigned half = blockDim.x;
    const unsigned first = blockIdx.x * span;

    level(data + first, half, min(2 * half, n - first));
    if (half == 1) {
        partial[blockIdx.x] = data[first];
    }
}

// One thread launches the next level of all stretches as one grid: as many blocks, half as many threads.
__global__ void few_grids(int *data, int *partial, unsigned n, unsigned span)
{
    level_of_all(data, partial, n, span);
    if (blockDim.x > 1 && blockIdx.x == 0 && threadIdx.x == 0) {
        few_grids<<<gridDim.x, blockDim.x / 2, 0, cudaStreamTailLaunch>>>(data, partial, n, span);
    }
}

// A level that launches nothing: the host launches one after the other.
__global__ void host_level(int *data, int *partial, unsigned n, unsigned span)
{
    level_of_all(data, partial, n, span);
}

// One thread launches the flat kernel: what one launch from the device costs.
__global__ void launched(int *data, int *partial, unsigned n, unsigned block)
{
    reduce_interleaved<int><<<(n + block - 1) / block, block>>>(data, partial, n);
}
