// The two kernels by which textbooks show divergence. Optimised, the first has no branch left but the guard, its ways
// are a selection; the second keeps its branch, but of each loop only one store. Compiled for a debugger both do what
// they say.
//
// Neighbours of Unit threads go the same way: 1 parts the lanes of every warp, 32 keeps warps whole. The two values
// lie 2^31 apart, so that a sequence that wraps holds the right answer.

constexpr unsigned EVEN = 100;
constexpr unsigned ODD = EVEN + 0x80000000u;

__device__ __forceinline__ unsigned index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

template <unsigned Unit>
__global__ void textbook_select(unsigned *output, unsigned n, unsigned)
{
    const unsigned i = index();
    if (i < n) {
        unsigned a = 0;
        unsigned b = 0;
        if (i / Unit % 2 == 0) {
            a = EVEN;
        } else {
            b = ODD;
        }
        output[i] = a + b;
    }
}

template <unsigned Unit>
__global__ void textbook_store(unsigned *output, unsigned n, unsigned rounds)
{
    const unsigned i = index();
    if (i < n) {
        if (i / Unit % 2 == 0) {
            for (unsigned k = 0; k < rounds; ++k) {
                output[i] = EVEN;
            }
        } else {
            for (unsigned k = 0; k < rounds; ++k) {
                output[i] = ODD;
            }
        }
    }
}
