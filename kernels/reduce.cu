// Parallel sum, from neighbouring pairs to the memory's speed.
//
// The ladder reduces each block's part of `data` in place and leaves one sum per block in `partial`; the host adds
// those. Every kernel is right for any n: the last block may hold fewer elements than it has threads. Blocks are
// powers of two, of at least 64 threads where a kernel treats its last warp apart.

#include "reduction_in_place.cuh"

// Neighbouring pairs; the threads that work are 1, 1/2, 1/4 … of every warp, so every warp diverges in every step.
template <typename T>
__global__ void reduce_neighbored(T *data, T *partial, unsigned n)
{
    const unsigned tid = threadIdx.x;
    const unsigned first = blockIdx.x * blockDim.x;
    const unsigned live = min(blockDim.x, n - first);
    T *block = data + first;

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0 && tid + stride < live) {
            block[tid] = plus(block[tid], block[tid + stride]);
        }
        __syncthreads();
    }
    if (tid == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// The same pairs, worked by consecutive threads: whole warps fall idle, and only the last five steps diverge.
template <typename T>
__global__ void reduce_neighbored_less(T *data, T *partial, unsigned n)
{
    const unsigned tid = threadIdx.x;
    const unsigned first = blockIdx.x * blockDim.x;
    const unsigned live = min(blockDim.x, n - first);
    T *block = data + first;

    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned at = 2 * stride * tid;
        if (at + stride < live) {
            block[at] = plus(block[at], block[at + stride]);
        }
        __syncthreads();
    }
    if (tid == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// Halves a block's live elements until `last` are left: consecutive threads, consecutive addresses.
template <typename T>
__device__ __forceinline__ void fold(T *block, unsigned live, unsigned last)
{
    for (unsigned stride = blockDim.x / 2; stride >= last; stride /= 2) {
        if (threadIdx.x < stride && threadIdx.x + stride < live) {
            block[threadIdx.x] = plus(block[threadIdx.x], block[threadIdx.x + stride]);
        }
        __syncthreads();
    }
}

// Pairs half a block apart: every step reads and writes whole lines.
template <typename T>
__global__ void reduce_interleaved(T *data, T *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x;
    T *block = data + first;

    fold(block, min(blockDim.x, n - first), 1);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// Unroll blocks' worth of elements per block, then as `reduce_interleaved`.
template <typename T, unsigned Unroll>
__global__ void reduce_unrolling(T *data, T *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x * Unroll;
    T *block = data + first;

    gather<T, Unroll>(data, first, n);
    fold(block, min(blockDim.x, n - first), 1);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// The last 64 elements by one warp, unrolled. Since Volta the lanes of a warp do not run in lockstep: each step
// needs its two __syncwarp, which the older literature leaves out.
template <typename T>
__device__ __forceinline__ void fold_warp(T *block)
{
    volatile T *shared = block;
    const unsigned lane = threadIdx.x;
    T value = shared[lane];
#pragma unroll
    for (unsigned stride = 32; stride > 0; stride /= 2) {
        value = plus<T>(value, shared[lane + stride]);
        __syncwarp();
        shared[lane] = value;
        __syncwarp();
    }
}

// Eight blocks' worth per block, the last warp unrolled.
template <typename T>
__global__ void reduce_unroll_warps8(T *data, T *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x * 8;
    const unsigned live = min(blockDim.x, n - first);
    T *block = data + first;

    gather<T, 8>(data, first, n);
    if (live == blockDim.x) {
        fold(block, live, 64);
        if (threadIdx.x < 32) {
            fold_warp(block);
        }
    } else {
        fold(block, live, 1);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// One step of a fold that is written out: `half` threads add what lies `half` behind them.
template <typename T>
__device__ __forceinline__ void fold_step(T *block, unsigned half)
{
    if (threadIdx.x < half) {
        block[threadIdx.x] = plus(block[threadIdx.x], block[threadIdx.x + half]);
    }
    __syncthreads();
}

// As before with the loop written out; the block's size is asked at run time.
template <typename T>
__global__ void reduce_complete_unroll_warps8(T *data, T *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x * 8;
    const unsigned live = min(blockDim.x, n - first);
    T *block = data + first;

    gather<T, 8>(data, first, n);
    if (live == blockDim.x) {
        if (blockDim.x >= 1024) fold_step(block, 512);
        if (blockDim.x >= 512) fold_step(block, 256);
        if (blockDim.x >= 256) fold_step(block, 128);
        if (blockDim.x >= 128) fold_step(block, 64);
        if (threadIdx.x < 32) {
            fold_warp(block);
        }
    } else {
        fold(block, live, 1);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// As before with the block's size known to the compiler: the comparisons are gone.
template <typename T, unsigned Block>
__global__ void reduce_complete_unroll(T *data, T *partial, unsigned n)
{
    const unsigned first = blockIdx.x * Block * 8;
    const unsigned live = min(Block, n - first);
    T *block = data + first;

    gather<T, 8>(data, first, n);
    if (live == Block) {
        if (Block >= 1024) fold_step(block, 512);
        if (Block >= 512) fold_step(block, 256);
        if (Block >= 256) fold_step(block, 128);
        if (Block >= 128) fold_step(block, 64);
        if (threadIdx.x < 32) {
            fold_warp(block);
        }
    } else {
        fold(block, live, 1);
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// What one thread adds up: Loads independent 16-byte loads at a time, a grid apart, and the few elements behind.
template <typename T, unsigned Loads>
__device__ __forceinline__ T sum_of_packs(const T *__restrict__ input, size_t n)
{
    const Pack<T> *packs = reinterpret_cast<const Pack<T> *>(input);
    const size_t count = n / Pack<T>::size;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t me = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    T total = T();
    size_t i = me;
    for (; i + (Loads - 1) * step < count; i += Loads * step) {
        Pack<T> loaded[Loads];
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            loaded[k] = packs[i + k * step];
        }
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            total = plus(total, loaded[k].sum());
        }
    }
    for (; i < count; i += step) {
        total = plus(total, packs[i].sum());
    }
    const size_t behind = count * Pack<T>::size + me;
    if (behind < n) {
        total = plus(total, input[behind]);
    }
    return total;
}

// Vector loads and shuffles; reads only, and writes one sum per block.
template <typename T, unsigned Loads>
__global__ void reduce_vector(const T *__restrict__ input, T *partial, size_t n)
{
    const T total = Shuffle<T>::sum(sum_of_packs<T, Loads>(input, n));
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = total;
    }
}

// The same in one launch: the block that finishes last adds the others' sums. `ticket` is zero before the launch.
template <typename T, unsigned Loads>
__global__ void reduce_single(const T *__restrict__ input, T *sums, unsigned *ticket, T *result, size_t n)
{
    __shared__ bool last;
    const T mine = Shuffle<T>::sum(sum_of_packs<T, Loads>(input, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = mine;
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        T total = T();
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            total = plus(total, static_cast<volatile T *>(sums)[i]);
        }
        total = Shuffle<T>::sum(total);
        if (threadIdx.x == 0) {
            *result = total;
        }
    }
}
