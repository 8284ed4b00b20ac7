// Kernels that request something from the system: clocks, output, heap memory, calls. Each comment says what is output.
// system.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo; system_debug.ptx with -G instead.

#include <cuda/std/cassert>

// out[0] to out[2]: number of ticks of the 32-bit, 64-bit and global clocks during a loop.
extern "C" __global__ void clocks(long long *out, volatile int *data, int n)
{
    unsigned long long begin, end;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    const long long wide = clock64();
    const int narrow = clock();
    for (int i = 0; i < n; i++) {
        data[threadIdx.x] = i;
    }
    out[0] = clock() - narrow;
    out[1] = clock64() - wide;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    out[2] = end - begin;
}

// Waits until the clock has advanced by `moves`.
extern "C" __global__ void waits(int *out, long long moves)
{
    const long long begin = clock64();
    while (clock64() - begin < moves) {
    }
    out[threadIdx.x] = 1;
}

// Prints every kind of conversion; out[0] is the number of values in the first line.
extern "C" __global__ void formats(int *out, const char *text)
{
    out[0] = printf("[%5d|%-5d|%05d|%+d] [%x|%#X|%o|%u]\n", 42, 42, 42, 42, 255, 255, 8, -1);
    printf("[%8.3f|%-8.1f|%e|%g|%G] [%c|%5s|%-5s|%.2s] 100%%\n", 3.14159, 2.5, 12345.678, 1e-7, 1e20, 'x', "ab", "cd", "efgh");
    printf("[%lld|%llx|%hd|%hhu|%ld] [%*d|%.*f]\n", -5000000000LL, 0x123456789abcULL, (short)-3, (unsigned char)200, 7L, 6, 12, 2, 1.0);
}

// Each thread allocates pieces until an allocation fails; out[t] is the number of pieces, all of which are freed.
extern "C" __global__ void exhausts(int *out, int bytes)
{
    void *pieces[8];
    int got = 0;
    while (got < 8 && (pieces[got] = malloc(bytes)) != nullptr) {
        got++;
    }
    out[threadIdx.x] = got;
    for (int i = 0; i < got; i++) {
        free(pieces[i]);
    }
}

extern "C" __global__ void frees_twice(int *out)
{
    int *piece = (int *)malloc(16);
    free(piece);
    if (threadIdx.x == 2) {
        free(piece);
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void frees_a_buffer(int *out)
{
    if (threadIdx.x == 1) {
        free(out + 4);
    }
}

extern "C" __global__ void reads_what_was_freed(int *out)
{
    volatile int *piece = (int *)malloc(64);
    piece[5] = 3;
    free((void *)piece);
    out[threadIdx.x] = piece[5];
}

__device__ __noinline__ int sum_to(int n) { return n == 0 ? 0 : n + sum_to(n - 1); }

// out[t] = 0 + 1 + … + (depth + t).
extern "C" __global__ void recurses(int *out, int depth) { out[threadIdx.x] = sum_to(depth + threadIdx.x); }

__device__ __noinline__ int without_end(int n) { return without_end(n + 1) * 3 + n; }

extern "C" __global__ void recurses_without_end(int *out) { out[threadIdx.x] = without_end(threadIdx.x); }

typedef int (*Function)(int);

extern "C" __global__ void calls_nothing(int *out, Function function)
{
    if (threadIdx.x == 3) {
        out[0] = function(1);
    }
}

struct Shape {
    __device__ virtual int area(int x) const { return x; }
};
struct Square : Shape {
    __device__ int area(int x) const override { return x * x; }
};
struct Cube : Square {
    __device__ int area(int x) const override { return 6 * x * x; }
};

// out[t] = area of one of three shapes, through their virtual tables.
extern "C" __global__ void overrides(int *out)
{
    Shape shape;
    Square square;
    Cube cube;
    const Shape *shapes[] = {&shape, &square, &cube};
    out[threadIdx.x] = shapes[threadIdx.x % 3]->area(threadIdx.x);
}

__device__ __noinline__ int checked(const int *data, int at)
{
    assert(data[at] > 0);
    return data[at];
}

extern "C" __global__ void asserts_in_a_function(const int *data, int *out) { out[threadIdx.x] = checked(data, threadIdx.x); }

// A sum in shared memory, launched from the module that is compiled without optimisation.
extern "C" __global__ void plain_sum(const int *data, int *out)
{
    __shared__ int tile[128];
    int mine = data[threadIdx.x];
    tile[threadIdx.x] = mine;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            tile[threadIdx.x] += tile[threadIdx.x + stride];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = tile[0];
    }
}
