// The operators that the documents name for a reduction, each with its neutral element, what it makes of one element
// (or of one of each array), and how it joins two. Everything else is one kernel.

#include "reduction.cuh"

__device__ __forceinline__ int times(int a, int b)
{
    return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
}
__device__ __forceinline__ float times(float a, float b)
{
    return a * b;
}

// The least and the greatest value of a type.
template <typename T>
__device__ T least();
template <typename T>
__device__ T greatest();
template <>
__device__ __forceinline__ int least<int>() { return static_cast<int>(0x80000000u); }
template <>
__device__ __forceinline__ int greatest<int>() { return 0x7fffffff; }
template <>
__device__ __forceinline__ float least<float>() { return __int_as_float(0xff800000u); }
template <>
__device__ __forceinline__ float greatest<float>() { return __int_as_float(0x7f800000u); }

template <typename T>
struct Sum {
    __device__ static T neutral() { return T(); }
    __device__ static T of(T x, T) { return x; }
    __device__ static T join(T a, T b) { return plus(a, b); }
};

template <typename T>
struct SumSquares : Sum<T> {
    __device__ static T of(T x, T) { return times(x, x); }
};

template <typename T>
struct Dot : Sum<T> {
    __device__ static T of(T x, T y) { return times(x, y); }
};

template <typename T>
struct Min {
    __device__ static T neutral() { return greatest<T>(); }
    __device__ static T of(T x, T) { return x; }
    __device__ static T join(T a, T b) { return min(a, b); }
};

template <typename T>
struct Max {
    __device__ static T neutral() { return least<T>(); }
    __device__ static T of(T x, T) { return x; }
    __device__ static T join(T a, T b) { return max(a, b); }
};

template <typename T>
struct And {
    __device__ static T neutral() { return ~T(); }
    __device__ static T of(T x, T) { return x; }
    __device__ static T join(T a, T b) { return a & b; }
};

template <typename T>
struct Or {
    __device__ static T neutral() { return T(); }
    __device__ static T of(T x, T) { return x; }
    __device__ static T join(T a, T b) { return a | b; }
};

// What counts as true is one, all else zero.
template <typename T>
struct LogicalAnd {
    __device__ static T neutral() { return T(1); }
    __device__ static T of(T x, T) { return x != T() ? T(1) : T(); }
    __device__ static T join(T a, T b) { return a != T() && b != T() ? T(1) : T(); }
};

template <typename T>
struct LogicalOr {
    __device__ static T neutral() { return T(); }
    __device__ static T of(T x, T) { return x != T() ? T(1) : T(); }
    __device__ static T join(T a, T b) { return a != T() || b != T() ? T(1) : T(); }
};

template <typename T, typename Op>
__device__ __forceinline__ T of_warp(T value)
{
#pragma unroll
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        value = Op::join(value, __shfl_down_sync(0xffffffffu, value, offset));
    }
    return value;
}

// The block's result, in thread 0. Blocks are multiples of 32.
template <typename T, typename Op>
__device__ __forceinline__ T of_block(T value)
{
    __shared__ T of_warps[32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    value = of_warp<T, Op>(value);
    // A block may join twice: no warp writes before all have read the previous results.
    __syncthreads();
    if (lane == 0) {
        of_warps[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = of_warp<T, Op>(lane < blockDim.x / 32 ? of_warps[lane] : Op::neutral());
    }
    return value;
}

// One pack of each array, joined. Only a dot product reads `y`.
template <typename T, typename Op>
__device__ __forceinline__ T of_pack(const Pack<T> &x, const Pack<T> &y)
{
    T value = Op::of(x.at[0], y.at[0]);
#pragma unroll
    for (unsigned k = 1; k < Pack<T>::size; ++k) {
        value = Op::join(value, Op::of(x.at[k], y.at[k]));
    }
    return value;
}

// Loads packs per thread, one block apart, all loaded before the first is joined. The arrays are aligned to 16 bytes.
template <typename T, typename Op, unsigned Loads>
__device__ __forceinline__ T of_packs(const Pack<T> *x, const Pack<T> *y, size_t first, size_t count)
{
    T value = Op::neutral();
    if (first + (Loads - 1) * blockDim.x < count) {
        Pack<T> from_x[Loads], from_y[Loads];
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            from_x[k] = x[first + k * blockDim.x];
            from_y[k] = y[first + k * blockDim.x];
        }
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            value = Op::join(value, of_pack<T, Op>(from_x[k], from_y[k]));
        }
    } else {
        for (size_t i = first; i < count && i < first + Loads * blockDim.x; i += blockDim.x) {
            value = Op::join(value, of_pack<T, Op>(x[i], y[i]));
        }
    }
    return value;
}

// What one thread joins: Turns times Loads packs of its block's stretch. Of the few elements behind the last pack, the
// first threads of the grid take one each.
template <typename T, typename Op, unsigned Loads, unsigned Turns>
__device__ __forceinline__ T of_thread(const T *__restrict__ x, const T *__restrict__ y, size_t n)
{
    const Pack<T> *xs = reinterpret_cast<const Pack<T> *>(x);
    const Pack<T> *ys = reinterpret_cast<const Pack<T> *>(y);
    const size_t count = n / Pack<T>::size;
    size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x * Loads * Turns + threadIdx.x;
    T value = Op::neutral();
#pragma unroll 1
    for (unsigned turn = 0; turn < Turns; ++turn) {
        value = Op::join(value, of_packs<T, Op, Loads>(xs, ys, first, count));
        first += Loads * blockDim.x;
    }
    const size_t behind = count * Pack<T>::size + threadIdx.x;
    if (blockIdx.x == 0 && behind < n) {
        value = Op::join(value, Op::of(x[behind], y[behind]));
    }
    return value;
}

// One launch: the block that finishes last joins the others' results. `ticket` is zero before the launch, and after it.
template <typename T, template <typename> class Operator, unsigned Loads, unsigned Turns>
__global__ void reduce(const T *__restrict__ x, const T *__restrict__ y, T *results, unsigned *ticket, T *result, size_t n)
{
    using Op = Operator<T>;
    __shared__ bool last;
    T value = of_block<T, Op>(of_thread<T, Op, Loads, Turns>(x, y, n));
    if (gridDim.x > 1) {
        if (threadIdx.x == 0) {
            results[blockIdx.x] = value;
            // The result must be seen before the ticket is.
            __threadfence();
            last = atomicAdd(ticket, 1u) == gridDim.x - 1;
        }
        __syncthreads();
        if (!last) {
            return;
        }
        __threadfence();
        value = Op::neutral();
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            value = Op::join(value, __ldcg(results + i));
        }
        value = of_block<T, Op>(value);
    }
    if (threadIdx.x == 0) {
        *result = value;
        *ticket = 0;
    }
}
