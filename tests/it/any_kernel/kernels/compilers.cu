// A file as nvcc compiles it: with headers and functions of the host around the kernel.
#include <cmath>
#include <cstdio>
#include <vector>

namespace waves {

__device__ float phases[4];

template <typename T, int SCALE>
__global__ void wave(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = SCALE * in[i] + phases[i % 4];
}

} // namespace waves

std::vector<float> host_things;

int main()
{
    waves::wave<float, 3><<<1, 1>>>(nullptr, nullptr, 0);
    std::printf("%zu\n", host_things.size());
}
