// Kernels of which the simulator runs a sample of the blocks.

#ifndef TAPS
#define TAPS 1
#endif

// The sum of each pixel's surroundings, weighted by a filter of TAPS x TAPS taps; pixels outside of the image are 0.
__constant__ float filter[TAPS * TAPS];

__global__ void convolution(float *out, const float *image, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0;
    for (int i = 0; i < TAPS; i++) {
        int row = y + i - TAPS / 2;
        if (row < 0 || row >= n) continue;
        for (int j = 0; j < TAPS; j++) {
            int column = x + j - TAPS / 2;
            if (column >= 0 && column < n) sum += image[row * n + column] * filter[i * TAPS + j];
        }
    }
    out[y * n + x] = sum;
}

// Adds one in place, except in one element of every block of which the number is a multiple of `skip`.
__global__ void increment(int *values, int skip) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] += skip && blockIdx.x % skip == 0 && threadIdx.x == 5 ? 2 : 1;
}

__global__ void histogram(unsigned *bins, const int *values) {
    atomicAdd(&bins[values[blockIdx.x * blockDim.x + threadIdx.x] & 7], 1u);
}

// Writes nothing.
__global__ void nothing(int *values, int skip) {}

// Reads what the next block writes.
__global__ void neighbour(int *out, const int *values) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = values[i];
    if (out[(i + blockDim.x) % (gridDim.x * blockDim.x)] == -5) out[i] = 0;
}
