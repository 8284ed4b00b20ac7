__global__ void scale(const float* input, float* output, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = 2.0f * input[i];
}

__global__ void twice(const float* input, float* output, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) output[i] = input[i] + input[i];
}
