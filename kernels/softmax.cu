// Softmax of the rows of a matrix: exp(x - max) / sum(exp(x - max)). One block per row.
//
// `softmax_triton.ptx` and `softmax_numba.ptx` hold the same by other compilers; `softmax_ptx.py` makes both.

#include <math_constants.h>

// Of the block's warps, in any thread's order: the operation is a maximum or a sum.
template <typename Operation>
__device__ float of_block(float x, float *of_warps, Operation operation)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        x = operation(x, __shfl_xor_sync(0xffffffff, x, distance));
    }
    const int warps = blockDim.x / 32;
    // The results of the operation before may still be read.
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        of_warps[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = of_warps[0];
    for (int warp = 1; warp < warps; ++warp) {
        x = operation(x, of_warps[warp]);
    }
    return x;
}

struct Maximum {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

// Reads each element from memory three times.
__global__ void softmax_three_reads(float *out, const float *in, int columns)
{
    __shared__ float of_warps[32];
    const float *row = in + static_cast<size_t>(blockIdx.x) * columns;
    float most = -CUDART_INF_F;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        most = fmaxf(most, row[i]);
    }
    most = of_block(most, of_warps, Maximum{});
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        sum += expf(row[i] - most);
    }
    sum = of_block(sum, of_warps, Sum{});
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        out[static_cast<size_t>(blockIdx.x) * columns + i] = expf(row[i] - most) / sum;
    }
}

// Keeps the row in registers: each thread has eight of its elements, as two vectors.
__global__ void softmax(float4 *out, const float4 *in)
{
    __shared__ float of_warps[32];
    const size_t row = static_cast<size_t>(blockIdx.x) * 2 * blockDim.x;
    float4 mine[2] = {in[row + threadIdx.x], in[row + blockDim.x + threadIdx.x]};
    float most = -CUDART_INF_F;
    for (const float4 &x : mine) {
        most = fmaxf(most, fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w)));
    }
    most = of_block(most, of_warps, Maximum{});
    float sum = 0.0f;
    for (float4 &x : mine) {
        x = make_float4(expf(x.x - most), expf(x.y - most), expf(x.z - most), expf(x.w - most));
        sum += (x.x + x.y) + (x.z + x.w);
    }
    sum = of_block(sum, of_warps, Sum{});
    for (int i = 0; i < 2; ++i) {
        const float4 x = mine[i];
        out[row + i * blockDim.x + threadIdx.x] = make_float4(x.x / sum, x.y / sum, x.z / sum, x.w / sum);
    }
}
