// Half precision and bfloat16, single and in pairs.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// y = a x + y on halves, one a thread.
extern "C" __global__ void axpy_half(const __half *x, __half *y, __half a, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __hfma(a, x[i], y[i]);
    }
}

// y = max(a x + y, 0) on pairs of halves.
extern "C" __global__ void axpy_relu_half2(const __half2 *x, __half2 *y, __half2 a, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = __hfma2_relu(a, x[i], y[i]);
    }
}

// The dot product of bfloats, accumulated in single precision by one block of 128.
extern "C" __global__ void dot_bfloat(const __nv_bfloat16 *x, const __nv_bfloat16 *y, float *out, int n)
{
    __shared__ float parts[128];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 128) {
        sum += __bfloat162float(x[i]) * __bfloat162float(y[i]);
    }
    parts[threadIdx.x] = sum;
    for (int half = 64; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        *out = parts[0];
    }
}

// Larger, smaller, and the product rounded to bfloat, of pairs; compared lanes count into `less`.
extern "C" __global__ void compare_bfloat2(const __nv_bfloat162 *x, const __nv_bfloat162 *y, __nv_bfloat162 *most, __nv_bfloat162 *least, __nv_bfloat162 *product, int *less)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    most[i] = __hmax2(x[i], y[i]);
    least[i] = __hmin2(x[i], y[i]);
    product[i] = __hmul2(x[i], y[i]);
    if (__hlt(__low2bfloat16(x[i]), __low2bfloat16(y[i]))) {
        atomicAdd(less, 1);
    }
}

// Sums of halves by atomics, one and in pairs: every addend is a small integer, so that any order gives the same.
extern "C" __global__ void atomic_halves(__half *one, __half2 *two, __nv_bfloat16 *brain)
{
    atomicAdd(one, __float2half(1.0f));
    atomicAdd(two, __floats2half2_rn(1.0f, 2.0f));
    if (threadIdx.x < 64) {
        atomicAdd(brain, __float2bfloat16(1.0f));
    }
}

// Integers to halves and back, rounded in each direction: four results a thread.
extern "C" __global__ void convert_half(const float *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half h = __float2half_rn(in[i]);
    out[4 * i] = __half2int_rn(h);
    out[4 * i + 1] = __half2int_rz(h);
    out[4 * i + 2] = __half2int_rd(h);
    out[4 * i + 3] = __half2int_ru(h);
}
