#include <cooperative_groups.h>

extern "C" __global__ void grid_sync(const float *x, float *out, unsigned n)
{
    cooperative_groups::this_grid().sync();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2 * x[i];
}

extern "C" __global__ void full_mask(const float *x, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i];
        if (threadIdx.x & 1) v = __shfl_sync(0xffffffffu, v, threadIdx.x & 31);
        out[i] = 2 * v;
    }
}
