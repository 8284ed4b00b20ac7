// Copies: three that are right, one that writes to an address it is given, one that never ends.

__global__ void copy_plain(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

__global__ void copy_grid_stride(const float *in, float *out, unsigned n) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

__global__ void copy_backwards(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[n - 1 - i] = in[n - 1 - i];
}

// The address comes as an argument, so that the compiler does not know that it is null.
__global__ void write_to(const float *in, float *out, unsigned n, unsigned long long address) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
    if (i == n / 2) *reinterpret_cast<volatile float *>(address) = 1.0f;
}

__global__ void never_ends(const float *in, float *out, unsigned n) {
    __shared__ volatile int go;
    if (threadIdx.x == 0) go = 0;
    __syncthreads();
    while (go == 0) {
    }
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
