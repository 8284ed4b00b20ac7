// SPDX-License-Identifier: MIT OR Apache-2.0
// The names of cuRAND's device interface that published kernels mention. A kernel that draws a number traps: the gallery
// measures those that draw none.
#pragma once

#include <cuda_runtime.h>

struct curandStatePhilox4_32_10_t {};

__device__ inline void curand_init(unsigned long long, unsigned long long, unsigned long long, curandStatePhilox4_32_10_t *)
{
    __trap();
}

__device__ inline float curand_uniform(curandStatePhilox4_32_10_t *)
{
    __trap();
    return 0;
}

__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10_t *)
{
    __trap();
    return {};
}
