// What kernels of others do that a simulator easily gets wrong. On an H100 all of them are right, but for the last two.

// Addresses of shared memory have 32 bits: PTX truncates a 64-bit register. p[~i] is p[-1 - i].
extern "C" __global__ void wrap(int *out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  tile[threadIdx.x + 32] = threadIdx.x + 32;
  __syncthreads();
  int *p = tile + 40;
  unsigned i = threadIdx.x;
  out[i] = p[~i];
}

// Some lanes of a warp return; the others go on to barriers, which wait only for threads that have not exited.
extern "C" __global__ void early(int *out, int n) {
  __shared__ int tile[64];
  if (threadIdx.x >= n) return;
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

// Two blocks store the same value to the same byte; block 0 stores another byte of the word beside it.
extern "C" __global__ void same_byte(signed char *flags) {
  if (threadIdx.x == 0) {
    flags[1] = 1;
    if (blockIdx.x == 0) flags[2] = 1;
  }
}

// The same within a block.
extern "C" __global__ void same_byte_in_block(signed char *flags) {
  if (threadIdx.x % 32 == 0) {
    flags[1] = 1;
    if (threadIdx.x == 0) flags[2] = 1;
  }
}

// The same with words.
extern "C" __global__ void same_int(int *flags) {
  if (threadIdx.x == 0) {
    flags[1] = 1;
    if (blockIdx.x == 0) flags[2] = 1;
  }
}

// 32 lanes store different values to one address in one instruction: it is undefined which one is kept.
extern "C" __global__ void lanes(int *out) { out[0] = threadIdx.x; }

// A read just before `second`.
extern "C" __global__ void before(const int *first, const int *second, int *out) {
  out[threadIdx.x] = first[threadIdx.x] + second[(int)threadIdx.x - 4];
}

// Prints a line, then traps unless its argument is 0.
extern "C" __global__ void prints(int traps) {
  if (threadIdx.x == 0) printf("launch %d\n", traps);
  if (traps) __trap();
}

extern "C" __global__ void thousandth(double *o) {
    o[threadIdx.x] = 1e-3;
}
