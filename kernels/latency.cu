// How much must be in flight: a fixed number of warps, each thread with Loads independent loads at a time.

__device__ __forceinline__ unsigned sum(unsigned value)
{
    return value;
}

__device__ __forceinline__ unsigned sum(uint4 value)
{
    return value.x + value.y + value.z + value.w;
}

// Each thread leaves its own sum. n is in words, a multiple of the size of Word.
template <typename Word, unsigned Loads>
__global__ void in_flight(const Word *in, unsigned *partial, size_t n)
{
    const size_t count = n * sizeof(unsigned) / sizeof(Word);
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    const size_t me = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    unsigned total = 0;
    size_t i = me;
#pragma unroll 1
    for (; i + (Loads - 1) * step < count; i += Loads * step) {
        Word loaded[Loads];
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            loaded[k] = in[i + k * step];
        }
#pragma unroll
        for (unsigned k = 0; k < Loads; ++k) {
            total += sum(loaded[k]);
        }
    }
#pragma unroll 1
    for (; i < count; i += step) {
        total += sum(in[i]);
    }
    partial[me] = total;
}
