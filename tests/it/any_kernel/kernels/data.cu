// Kernels that read what a manifest can describe.
#include <cstdint>

template <typename T> __global__ void copy(T *out, const T *in, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

__global__ void subtract(float *out, const float *a, const float *b, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] - b[i];
}

// The product of a sparse matrix of ones and a vector.
__global__ void spmv(float *y, const int *begins, const int *columns, const float *x, uint32_t rows) {
    uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int at = begins[row]; at < begins[row + 1]; ++at) sum += x[columns[at]];
    y[row] = sum;
}

// Whether neighbours ascend: every out[i] is 1 then.
__global__ void ascends(int *out, const float *in, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i == 0 || in[i - 1] <= in[i];
}

__global__ void scan(int *out, const int *in, uint32_t n) {
    int sum = 0;
    for (uint32_t i = 0; i < n; ++i) out[i] = sum += in[i];
}

__global__ void histogram(int *counts, const int *in, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[in[i]], 1);
}

// A filter of 3 × 3 around each element of one block's image.
__global__ void blur(float *out, const float *in, const float *weights, int rows, int columns) {
    int row = threadIdx.y, column = threadIdx.x;
    float sum = 0.0f;
    for (int i = -1; i <= 1; ++i) {
        for (int j = -1; j <= 1; ++j) {
            int y = row + i, x = column + j;
            if (y >= 0 && y < rows && x >= 0 && x < columns) {
                sum += in[y * columns + x] * weights[(i + 1) * 3 + j + 1];
            }
        }
    }
    out[row * columns + column] = sum;
}

struct Scale {
    float factor;
    double offset;
    uint8_t negate;
};

__global__ void scaled(float *out, const float *in, Scale scale, float4 weights, bool twice, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = in[i] * scale.factor + (float)scale.offset + weights.x + weights.w;
    out[i] = (scale.negate ? -value : value) * (twice ? 2 : 1);
}

__global__ void quads(float4 *out, const float4 *in, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = make_float4(in[i].x, in[i].y, in[i].z, in[i].w);
}

int main() {
    copy<<<1, 32>>>((int *)nullptr, (const int *)nullptr, 0u);
    return 0;
}
