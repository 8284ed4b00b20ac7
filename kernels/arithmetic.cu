// How many multiply-adds must be in flight: a fixed number of warps, each thread with Chains chains of them, in which each
// waits for the one before.

// Every chain makes `steps` steps from x to x · a + b. With a = b = 1 it ends `steps` above where it began, exactly, as
// long as all of it stays below 2^24. `steps` is a multiple of 32.
template <unsigned Chains>
__global__ void chains(const float *in, float *out, float a, float b, unsigned steps)
{
    const size_t me = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    float x[Chains];
#pragma unroll
    for (unsigned k = 0; k < Chains; ++k) {
        x[k] = in[me] + static_cast<float>(k);
    }
#pragma unroll 1
    for (unsigned step = 0; step < steps; step += 32) {
#pragma unroll
        for (unsigned again = 0; again < 32; ++again) {
#pragma unroll
            for (unsigned k = 0; k < Chains; ++k) {
                x[k] = fmaf(x[k], a, b);
            }
        }
    }
    float sum = 0;
#pragma unroll
    for (unsigned k = 0; k < Chains; ++k) {
        sum += x[k];
    }
    out[me] = sum;
}
