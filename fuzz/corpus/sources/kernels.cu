#include <cstdio>
#include "k.cu"
#define HEADER "k.cpp"
#include HEADER
#define MAKE(name) extern "C" int name(int)
/* a comment " with a quote */
__constant__ float table[8] = {1, 2, 3};
__device__ __align__(16) unsigned counter;
template <typename T, int N = 4> struct Pair { T a[N]; __device__ T get() const { return a[0]; } };
namespace n {
template <typename T>
__global__ void __launch_bounds__(256, 2) wide(const T *__restrict__ a, T *b, Pair<T> p = {}) { b[0] = a[0]; }
}
extern "C" {
__global__ void k(const float *a, float *b) { b[threadIdx.x] = a[threadIdx.x] * table[0]; }
int f(const float *a, float *b) { return 0; }
}
const char *text = R"x(") __global__ )x";
MAKE(g) { return '}'; }
int main(int argc, char **argv) {
    k<<<1, dim3{8, 1}>>>(nullptr, nullptr); // }
    printf("{\n");
}
