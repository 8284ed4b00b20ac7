// Kernels that the device aborts. Each copies what it can first, so that nothing but the abort is wrong with it.
// Addresses and depths come as arguments or from memory: a compiler that knew them would leave the fault out.

#include "launches.cuh"

__device__ unsigned copy_one(const int *in, int *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
    return i;
}

__global__ void copy_plain(const int *in, int *out, unsigned n) { copy_one(in, out, n); }

__global__ void fails_an_assertion(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    assert(i != n / 2);
}

__global__ void traps(const int *in, int *out, unsigned n) {
    if (copy_one(in, out, n) == n / 2) __trap();
}

__global__ void jumps_into_data(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    auto function = reinterpret_cast<void (*)(unsigned)>(const_cast<int *>(in));
    if (i == n / 2) function(i);
}

__global__ void writes_across_words(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    if (i == n / 2) *reinterpret_cast<volatile int *>(reinterpret_cast<char *>(out) + 1) = 1;
}

__global__ void writes_past_shared_memory(const int *in, int *out, unsigned n, unsigned far) {
    extern __shared__ volatile int tile[];
    unsigned i = copy_one(in, out, n);
    tile[threadIdx.x] = 1;
    if (i == n / 2) tile[far] = 1;
}

__device__ __noinline__ int deeper(int depth, unsigned last) {
    volatile int frame[256];
    frame[depth & 255] = depth;
    if (static_cast<unsigned>(depth) == last) return 0;
    return deeper(depth + 1, last) + frame[(depth * 7) & 255];
}

__global__ void recurses_for_ever(const int *in, int *out, unsigned n, unsigned last) {
    unsigned i = copy_one(in, out, n);
    if (i == n / 2) out[i] += deeper(0, last);
}

__global__ void traps_from_the_second_launch(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    if (launches_before() > 0 && i == n / 2) __trap();
}

__global__ void hangs_from_the_second_launch(const int *in, int *out, unsigned n) {
    __shared__ volatile int go;
    if (threadIdx.x == 0) go = 0;
    __syncthreads();
    copy_one(in, out, n);
    if (launches_before() > 0) {
        while (go == 0) {
        }
    }
}
