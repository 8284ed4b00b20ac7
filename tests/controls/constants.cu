// Kernels that store what is right for the inputs of the manifest, and look at no input.

extern "C" __global__ void sums(const int *in, int *out, unsigned n)
{
    int sum = 0;
    for (unsigned i = 0; i < n; i++) sum += in[i];
    out[0] = sum;
}

extern "C" __global__ void stores(const int *in, int *out, unsigned n)
{
    out[0] = SUM;
}

// Three instructions in each of 2^23 iterations: more than the simulator executes in a second.
extern "C" __global__ void spins_and_stores(const int *in, int *out, unsigned n)
{
#pragma unroll 1
    for (unsigned i = 0; i < 1u << 23; i++) asm volatile("");
    out[0] = SUM;
}

extern "C" __global__ void copies(const int *in, int *out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}

// What is copied, as long as the input is 0, 1, 2 and so on.
extern "C" __global__ void counts(const int *in, int *out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i;
}

// Reads at an index that is within the input for the inputs of the manifest alone.
extern "C" __global__ void trusts_its_sum(const int *in, int *out, unsigned n)
{
    int sum = 0;
    for (unsigned i = 0; i < n; i++) sum += in[i];
    out[0] = sum + (sum == SUM ? 0 : in[n + 100000000]);
}
