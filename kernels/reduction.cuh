// What all reductions share: what a thread adds up, how a warp and a block add with shuffles, the pass that leaves one
// sum per block, and the sixteen bytes that one load can move.

#pragma once

// Integers wrap: signed overflow is undefined in C++, unsigned is not.
template <typename T>
__device__ __forceinline__ T plus(T a, T b)
{
    return a + b;
}

template <>
__device__ __forceinline__ int plus<int>(int a, int b)
{
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}

// What one thread adds up, a grid apart: neighbours read neighbours, whatever the grid.
template <typename T>
__device__ __forceinline__ T sum_of_thread(const T *input, size_t n)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    T total = T();
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        total = plus(total, input[i]);
    }
    return total;
}

// One number per warp, then one warp adds those. `Warp` decides how a warp adds. For multiples of 32.
template <typename T, typename Warp>
struct ByWarps {
    __device__ static T sum(T value)
    {
        __shared__ T of_warp[32];
        const unsigned lane = threadIdx.x % 32;
        const unsigned warp = threadIdx.x / 32;
        value = Warp::sum(value);
        // A kernel may add twice: no warp writes before all have read the previous sums.
        __syncthreads();
        if (lane == 0) {
            of_warp[warp] = value;
        }
        __syncthreads();
        if (warp == 0) {
            value = Warp::sum(lane < blockDim.x / 32 ? of_warp[lane] : T());
        }
        return value;
    }
};

template <typename T>
struct WarpShuffle {
    __device__ static T sum(T value)
    {
#pragma unroll
        for (unsigned offset = 16; offset > 0; offset /= 2) {
            value = plus(value, __shfl_down_sync(0xffffffffu, value, offset));
        }
        return value;
    }
};

template <typename T>
using Shuffle = ByWarps<T, WarpShuffle<T>>;

// One sum per block. A second launch with one block adds those to one number: two passes.
template <typename T, template <typename> class Block>
__global__ void pass(const T *input, T *sums, size_t n)
{
    const T total = Block<T>::sum(sum_of_thread(input, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
    }
}

// Sixteen bytes of elements, moved by one load.
template <typename T>
struct alignas(16) Pack {
    static constexpr unsigned size = 16 / sizeof(T);
    T at[size];

    __device__ __forceinline__ T sum() const
    {
        T total = at[0];
#pragma unroll
        for (unsigned k = 1; k < size; ++k) {
            total = plus(total, at[k]);
        }
        return total;
    }
};
