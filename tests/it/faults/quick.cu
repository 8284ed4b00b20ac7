// Copies, all of them right.

__global__ void copy_plain(const float *in, float *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

template <int unroll>
__global__ void copy_unrolled(const float *in, float *out, unsigned n) {
    unsigned first = blockIdx.x * blockDim.x * unroll + threadIdx.x;
#pragma unroll
    for (int k = 0; k < unroll; ++k) {
        unsigned i = first + k * blockDim.x;
        if (i < n) out[i] = in[i];
    }
}
