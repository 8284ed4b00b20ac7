// A file as nvcc compiles it: with headers and functions of the host around the kernel.
#include <cmath>
#include <cstdio>
#include <vector>

namespace waves {

__device__ float phases[4];

template <typename T>
struct Row {
    unsigned n;
    const T *in;
};

template <typename T, int SCALE>
__global__ void wave(T *out, const Row<T> row)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < row.n) out[i] = SCALE * row.in[i] + phases[i % 4];
}

} // namespace waves

std::vector<float> host_things;

int main()
{
    waves::wave<float, 3><<<1, 1>>>(nullptr, {0, nullptr});
    std::printf("%zu\n", host_things.size());
}
