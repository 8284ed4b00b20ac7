#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void square(const float *x, float *o) { o[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x]; }
extern "C" __global__ void power(const float *x, float *o) { o[threadIdx.x] = expf(x[threadIdx.x]); }
extern "C" __global__ void half_(const float *x, __half *o) { o[threadIdx.x] = __float2half(x[threadIdx.x]); }
extern "C" __global__ void brain(const float *x, __nv_bfloat16 *o) { o[threadIdx.x] = __float2bfloat16(x[threadIdx.x]); }
