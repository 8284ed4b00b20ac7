template <typename T>
__global__ void naive(const T *in, T *out, unsigned n) {}
template <typename T, int U>
__global__ void unrolled(const T *in, T *out, unsigned n) {}
__global__ void waves(const float *in, float *out) {}
