// Kernels whose results a manifest checks in part, or with a tolerance of the whole array.
#include <cstdint>

__global__ void add_bias(float *out, const float *weight, const float *bias, uint32_t rows, uint32_t columns) {
    uint32_t i = threadIdx.x;
    if (i < rows * columns) out[i] = weight[i] + bias[i % columns];
}

__global__ void copy_floats(float *out, const float *in, uint32_t n) {
    uint32_t i = threadIdx.x;
    if (i < n) out[i] = in[i];
}

// Every 100th element is wrong.
__global__ void spoil(float *out, const float *in, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + (i % 100 == 0 ? 1.0f : 0.0f);
}

// Rows of `columns` elements that begin `pitch` elements apart.
__global__ void double_rows(int *out, const int *in, uint32_t rows, uint32_t columns, uint32_t pitch) {
    uint32_t row = threadIdx.x / columns, column = threadIdx.x % columns;
    if (row < rows) out[row * pitch + column] = 2 * in[row * pitch + column];
}
