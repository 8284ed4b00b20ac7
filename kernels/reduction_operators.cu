// The operators that the documents name for a reduction, each with its neutral element, what it makes of one element
// (or of one of each array), and how it joins two. Everything else is one kernel.

// Integers wrap: signed overflow is undefined in C++, unsigned is not.
__device__ __forceinline__ int plus(int a, int b)
{
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
__device__ __forceinline__ float plus(float a, float b)
{
    return a + b;
}
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

template <typename T, typename Operator>
__device__ __forceinline__ T of_warp(T value)
{
#pragma unroll
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        value = Operator::join(value, __shfl_down_sync(0xffffffffu, value, offset));
    }
    return value;
}

// The block's result, in thread 0. Blocks are multiples of 32.
template <typename T, typename Operator>
__device__ __forceinline__ T of_block(T value)
{
    __shared__ T of_warps[32];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    value = of_warp<T, Operator>(value);
    if (lane == 0) {
        of_warps[warp] = value;
    }
    __syncthreads();
    if (warp == 0) {
        value = of_warp<T, Operator>(lane < blockDim.x / 32 ? of_warps[lane] : Operator::neutral());
    }
    return value;
}

// One result a block. Only a dot product reads `y`.
template <typename T, template <typename> class Operator>
__global__ void reduce(const T *x, const T *y, T *results, size_t n)
{
    using Op = Operator<T>;
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    T value = Op::neutral();
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        value = Op::join(value, Op::of(x[i], y[i]));
    }
    value = of_block<T, Op>(value);
    if (threadIdx.x == 0) {
        results[blockIdx.x] = value;
    }
}

// What the blocks left, joined by one block.
template <typename T, template <typename> class Operator>
__global__ void join(const T *results, T *result, size_t n)
{
    using Op = Operator<T>;
    T value = Op::neutral();
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        value = Op::join(value, results[i]);
    }
    value = of_block<T, Op>(value);
    if (threadIdx.x == 0) {
        *result = value;
    }
}
