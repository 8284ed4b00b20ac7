// What one variant leaves on the device must not help or hurt another.
#define K(name) extern "C" __global__ void name(const float *x, float *out, unsigned n)
__device__ float kept[1000];
K(honest) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { out[i] = 2 * x[i]; kept[i] = 2 * x[i]; } }
K(copies_a_variable) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = kept[i]; }

// Takes 3 MiB of the heap's 8 in each of its two launches, and does not give them back.
K(leaks)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ char *taken;
    if (threadIdx.x == 0) taken = blockIdx.x == 0 ? (char *)malloc(3 << 20) : (char *)1;
    __syncthreads();
    if (i < n) out[i] = taken ? 2 * x[i] : 0;
}
