// The kernels that the manifests of these tests name.
__device__ unsigned int ticket;

extern "C" __global__ void add(const float* a, const float* b, float* c, unsigned int n) {}

template <typename T>
__global__ void __launch_bounds__(256) reduce(const T* input, T* partial, unsigned int n) {}

/* __global__ void commented() {} */
