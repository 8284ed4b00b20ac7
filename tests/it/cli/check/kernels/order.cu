template <typename T>
__global__ void gather(T *out, const T *in, const int *index, unsigned n) {}

__global__ void last(const float *sums, float *result) {}
