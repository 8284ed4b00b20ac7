// `scale`, with a variable of another file, and another `helper` than that of the kernel.
extern __device__ float factor;

static __device__ __noinline__ float helper(float x) { return x * factor; }

__device__ float scale(float x) { return helper(x); }
