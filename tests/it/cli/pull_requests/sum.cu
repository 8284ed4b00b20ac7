#include "load.cuh"

// The sum of the elements of a block, each thread of which loads EACH of them.
template <int EACH>
__global__ void sum(const float* input, float* sums) {
    __shared__ float held[128 / EACH];
    float own = 0.0f;
    for (int k = 0; k < EACH; ++k) {
        own += load(input + (blockIdx.x * EACH + k) * blockDim.x + threadIdx.x);
    }
    held[threadIdx.x] = own;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = held[0];
}
