// Kernels with one planted fault each.
// faults.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo.

#include <cuda/std/cassert>

extern "C" __global__ void out_of_bounds(int *data, int n)
{
    data[threadIdx.x + 1] = n;
}

extern "C" __global__ void misaligned(char *data)
{
    *(int *)(data + 2 + threadIdx.x * 4) = 1;
}

extern "C" __global__ void uninitialised_global(const int *data, int *out)
{
    out[threadIdx.x] = data[threadIdx.x];
}

extern "C" __global__ void uninitialised_shared(int *out)
{
    __shared__ int tile[64];
    if (threadIdx.x < 10) {
        tile[threadIdx.x] = 1;
    }
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void shared_race(int *out)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void partial_barrier(int *out)
{
    if (threadIdx.x % 32 < 7) {
        __syncthreads();
        out[threadIdx.x] = 1;
    }
}

extern "C" __global__ void absent_lane(int *out)
{
    if (threadIdx.x < 16) {
        out[threadIdx.x] = __shfl_sync(0xffff, (int)threadIdx.x, threadIdx.x + 16);
    }
}

extern "C" __global__ void shared_out_of_range(int *out, int at)
{
    __shared__ int tile[32];
    tile[threadIdx.x + at] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void never_ends(volatile int *flag)
{
    while (*flag == 0) {
    }
}

extern "C" __global__ void failed_assertion(const int *data)
{
    assert(data[threadIdx.x] != 3);
}

extern "C" __global__ void trapped()
{
    if (threadIdx.x == 5) {
        __trap();
    }
}

extern "C" __global__ void null_pointer(int *out)
{
    int *nothing = nullptr;
    asm volatile("" : "+l"(nothing));
    *nothing = *out;
}
