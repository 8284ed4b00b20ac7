// Ways to sum an array to one number: how a block adds what its threads hold, and how the blocks' sums come together.
//
// Every kernel is right for any n from 1 and for any grid. Those that fold by halves say so and want blocks that are
// powers of two; `AnyTree` is for the others.

#include "reduction.cuh"

// ---- How a block adds what its threads hold. Each leaves the sum in thread 0. ----

// Adds the upper half of `count` values to the lower, and so on until `last` are left, with a barrier a step.
template <typename T>
__device__ __forceinline__ void halve(T *at, unsigned count, unsigned last)
{
    for (unsigned half = count / 2; half >= last; half /= 2) {
        if (threadIdx.x < half) {
            at[threadIdx.x] = plus(at[threadIdx.x], at[threadIdx.x + half]);
        }
        __syncthreads();
    }
}

// Halves in shared memory. For powers of two.
template <typename T>
struct SharedTree {
    __device__ static T sum(T value)
    {
        __shared__ T at[1024];
        at[threadIdx.x] = value;
        __syncthreads();
        halve(at, blockDim.x, 1);
        return at[0];
    }
};

// What is above the greatest power of two is added to the front first. For any size.
template <typename T>
struct AnyTree {
    __device__ static T sum(T value)
    {
        __shared__ T at[1024];
        const unsigned me = threadIdx.x;
        unsigned floor = 1u << (31 - __clz(blockDim.x));
        at[me] = value;
        __syncthreads();
        if (me >= floor) {
            at[me - floor] = plus(at[me - floor], at[me]);
        }
        __syncthreads();
        halve(at, floor, 1);
        return at[0];
    }
};

// The last 64 values by one warp without barriers, as was right while the lanes of a warp moved in lockstep. `volatile`
// makes every step write and read memory; that all lanes have read before one writes, nothing promises since Volta.
// For powers of two from 64.
template <typename T>
struct WarpVolatile {
    __device__ static T sum(T value)
    {
        __shared__ T at[1024];
        const unsigned me = threadIdx.x;
        at[me] = value;
        __syncthreads();
        halve(at, blockDim.x, 64);
        if (me < 32) {
            volatile T *last = at;
#pragma unroll
            for (unsigned half = 32; half > 0; half /= 2) {
                last[me] = plus<T>(last[me], last[me + half]);
            }
        }
        return at[0];
    }
};

// The same with the two barriers of the warp that each step needs: after the reads, and after the writes.
template <typename T>
struct WarpSynced {
    __device__ static T sum(T value)
    {
        __shared__ T at[1024];
        const unsigned me = threadIdx.x;
        at[me] = value;
        __syncthreads();
        halve(at, blockDim.x, 64);
        if (me < 32) {
            T mine = at[me];
#pragma unroll
            for (unsigned half = 32; half > 0; half /= 2) {
                mine = plus(mine, at[me + half]);
                __syncwarp();
                at[me] = mine;
                __syncwarp();
            }
        }
        return at[0];
    }
};

// One instruction for the whole warp; 32-bit integers, from sm_80.
template <typename T>
struct WarpRedux {
    __device__ static T sum(T value)
    {
        return __reduce_add_sync(0xffffffffu, value);
    }
};

template <typename T>
using Redux = ByWarps<T, WarpRedux<T>>;

// ---- How the blocks' sums come together. ----

// No tree at all: every thread adds its value to the result, which starts at zero.
template <typename T>
__global__ void atomic_thread(const T *input, T *result, size_t n)
{
    atomicAdd(result, sum_of_thread(input, n));
}

// One atomic per block.
template <typename T>
__global__ void atomic_block(const T *input, T *result, size_t n)
{
    const T total = SharedTree<T>::sum(sum_of_thread(input, n));
    if (threadIdx.x == 0) {
        atomicAdd(result, total);
    }
}

// The block that comes last adds the others' sums. `ticket` is zero before the launch, and after it.
template <typename T>
__global__ void last_block(const T *input, T *sums, unsigned *ticket, T *result, size_t n)
{
    __shared__ bool last;
    const T mine = Shuffle<T>::sum(sum_of_thread(input, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = mine;
        // The sum must be seen before the ticket is.
        __threadfence();
        last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        const volatile T *all = sums;
        T total = T();
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            total = plus<T>(total, all[i]);
        }
        total = Shuffle<T>::sum(total);
        if (threadIdx.x == 0) {
            *result = total;
            *ticket = 0;
        }
    }
}

// ---- Which elements a thread takes: Each of them, with a launch of n / Each threads. ----

enum Order { ADJACENT, BLOCK_STRIDE, GRID_STRIDE };

template <typename T, Order Way, unsigned Each>
__global__ void several(const T *input, T *sums, size_t n)
{
    const size_t thread = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    size_t first = thread;
    size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    if (Way == ADJACENT) {
        first = thread * Each;
        step = 1;
    } else if (Way == BLOCK_STRIDE) {
        first = static_cast<size_t>(blockIdx.x) * blockDim.x * Each + threadIdx.x;
        step = blockDim.x;
    }
    T value[Each];
#pragma unroll
    for (unsigned k = 0; k < Each; ++k) {
        const size_t i = first + k * step;
        value[k] = i < n ? input[i] : T();
    }
#pragma unroll
    for (unsigned k = 1; k < Each; ++k) {
        value[0] = plus(value[0], value[k]);
    }
    const T total = Shuffle<T>::sum(value[0]);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}

// ---- The fastest that we know: 16-byte loads, as many blocks as n needs, one atomic per block. ----

// The Loads packs of one thread, one block apart. `input` is aligned to 16 bytes.
template <typename T, unsigned Loads>
__device__ __forceinline__ T sum_of_packs(const T *__restrict__ input, size_t n)
{
    const Pack<T> *packs = reinterpret_cast<const Pack<T> *>(input);
    const size_t count = n / Pack<T>::size;
    const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x * Loads + threadIdx.x;
    T total = T();
    if (first + (Loads - 1) * blockDim.x < count) {
        Pack<T> loaded[Loads];
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            loaded[k] = packs[first + k * blockDim.x];
        }
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            total = plus(total, loaded[k].sum());
        }
    } else {
        for (size_t i = first; i < count && i < first + Loads * blockDim.x; i += blockDim.x) {
            total = plus(total, packs[i].sum());
        }
    }
    // The few elements behind the last pack.
    const size_t behind = count * Pack<T>::size + threadIdx.x;
    if (blockIdx.x == 0 && behind < n) {
        total = plus(total, input[behind]);
    }
    return total;
}

template <typename T, unsigned Loads>
__global__ void packs_pass(const T *__restrict__ input, T *sums, size_t n)
{
    const T total = Shuffle<T>::sum(sum_of_packs<T, Loads>(input, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}

template <typename T, unsigned Loads>
__global__ void packs_atomic(const T *__restrict__ input, T *result, size_t n)
{
    const T total = Shuffle<T>::sum(sum_of_packs<T, Loads>(input, n));
    if (threadIdx.x == 0) {
        atomicAdd(result, total);
    }
}

// How fast the array can be read: the sums go nowhere, unless one is a number that none can be.
template <typename T, unsigned Loads>
__global__ void packs_read(const T *__restrict__ input, T *sink, size_t n, T never)
{
    const T total = sum_of_packs<T, Loads>(input, n);
    if (total == never) {
        *sink = total;
    }
}
