__device__ int table[64];
__global__ void k() {}
__global__ void second() {}
template <typename T, int U>
__global__ void t() {}
