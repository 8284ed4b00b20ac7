// A sum in two passes whose partial sums lie in memory that the launch gives, or in a static array of the module.

#include "reduction.cuh"

#ifndef BLOCKS
#define BLOCKS 1
#endif

// Exists as long as the module: no call allocates it.
__device__ int static_sums[BLOCKS];

// BLOCKS blocks, then one.
__global__ void sums_static(const int *input, size_t n)
{
    const int total = Shuffle<int>::sum(sum_of_thread(input, n));
    if (threadIdx.x == 0) {
        static_sums[blockIdx.x] = total;
    }
}

__global__ void join_static(int *result)
{
    const int total = Shuffle<int>::sum(sum_of_thread<int>(static_sums, BLOCKS));
    if (threadIdx.x == 0) {
        *result = total;
    }
}
