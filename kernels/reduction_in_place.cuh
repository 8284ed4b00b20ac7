// What reductions share that fold each block's stretch of an array where it lies.

#pragma once

#include "reduction.cuh"

// Adds Unroll blocks' worth of elements into the first block's worth: Unroll independent loads per thread.
template <typename T, unsigned Unroll>
__device__ __forceinline__ void gather(T *data, unsigned first, unsigned n)
{
    const unsigned at = first + threadIdx.x;
    if (at + (Unroll - 1) * blockDim.x < n) {
        T value[Unroll];
#pragma unroll
        for (unsigned k = 0; k < Unroll; ++k) {
            value[k] = data[at + k * blockDim.x];
        }
#pragma unroll
        for (unsigned k = 1; k < Unroll; ++k) {
            value[0] = plus(value[0], value[k]);
        }
        data[at] = value[0];
    } else if (at < n) {
        T sum = data[at];
        for (unsigned k = 1; k < Unroll && at + k * blockDim.x < n; ++k) {
            sum = plus(sum, data[at + k * blockDim.x]);
        }
        data[at] = sum;
    }
    __syncthreads();
}
