// Twice the input.
__global__ void old(const float *in, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + in[i];
}

__global__ void strided(const float *in, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned j = i * 33 % n;
    if (i < n) out[j] = 2.0f * in[j];
}

__global__ void wrong(const float *in, float *out, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) out[i] = 2.0f * in[i];
}

template <int PER_THREAD>
__global__ void wide(const float *in, float *out, unsigned n)
{
    for (int k = 0; k < PER_THREAD; ++k) {
        unsigned i = (blockIdx.x * PER_THREAD + k) * blockDim.x + threadIdx.x;
        if (i < n) out[i] = 2.0f * in[i];
    }
}
