#include <cstdio>

#include <cuda_profiler_api.h>
#include <curand_kernel.h>
#include <nvtx3/nvToolsExt.h>

// The first number of each sequence of XORWOW.
__global__ void first_numbers(float *out) {
    curandState state;
    curand_init(1234, threadIdx.x, 0, &state);
    out[threadIdx.x] = curand_uniform(&state);
}

int main() {
    float *out;
    cudaMalloc(&out, 8 * sizeof(float));
    nvtxRangePushA("draw");
    cudaProfilerStart();
    first_numbers<<<1, 8>>>(out);
    cudaProfilerStop();
    nvtxRangePop();
    std::printf("%d\n", cudaDeviceSynchronize());
}
