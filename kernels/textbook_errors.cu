// Listings of the documents as they stand, each with its mistake, and mended: `Mended` is all that tells the two apart.
// What else the listings lack by today's rules, above all `__syncwarp`, they are given in both forms.

#include "reduction.cuh"

// Document B, the last steps of a block. From 8 on the listing adds `sPartials[8]`, the same element in every lane,
// where it means `sPartials[tid + 8]`.
template <bool Mended>
__device__ __forceinline__ void warp_step(volatile int *partials, unsigned offset)
{
    const unsigned from = Mended || offset >= 16 ? threadIdx.x + offset : offset;
    const int sum = plus<int>(partials[threadIdx.x], partials[from]);
    __syncwarp();
    partials[threadIdx.x] = sum;
    __syncwarp();
}

template <bool Mended>
__device__ __forceinline__ void log_steps(int *out, volatile int *partials)
{
    for (unsigned active = blockDim.x / 2; active > 32; active /= 2) {
        if (threadIdx.x < active) {
            partials[threadIdx.x] = plus<int>(partials[threadIdx.x], partials[threadIdx.x + active]);
        }
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        for (unsigned offset = 32; offset > 0; offset /= 2) {
            warp_step<Mended>(partials, offset);
        }
        if (threadIdx.x == 0) {
            *out = partials[0];
        }
    }
}

__device__ unsigned retirementCount = 0;

// The listing resets another counter than the one it counts with, which is nowhere declared.
#ifndef COUNTER
#define COUNTER retirementCount
#endif

// Document B's single pass without atomics on the data. Blocks are powers of two from 64 to 256.
template <bool Mended>
__global__ void single_pass(const int *in, int *partial, int *out, size_t n)
{
    __shared__ int partials[256];
    __shared__ bool last;
    partials[threadIdx.x] = sum_of_thread(in, n);
    __syncthreads();
    log_steps<Mended>(&partial[blockIdx.x], partials);
    __threadfence();
    if (threadIdx.x == 0) {
        last = atomicAdd(&retirementCount, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        int sum = 0;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            sum = plus<int>(sum, static_cast<volatile int *>(partial)[i]);
        }
        partials[threadIdx.x] = sum;
        __syncthreads();
        log_steps<Mended>(out, partials);
        COUNTER = 0;
    }
}

// Document B's last warp without `volatile`: the compiler need not store what no other thread is known to read; each
// lane adds what its partners held at the beginning. Blocks of 256.
template <bool Mended>
__global__ void last_warp(const int *in, int *partial, size_t n)
{
    __shared__ int at[256];
    const unsigned me = threadIdx.x;
    at[me] = sum_of_thread(in, n);
    __syncthreads();
    for (unsigned half = 128; half > 32; half /= 2) {
        if (me < half) {
            at[me] = plus(at[me], at[me + half]);
        }
        __syncthreads();
    }
    if (me < 32) {
#pragma unroll
        for (unsigned half = 32; half > 0; half /= 2) {
            const int sum = plus(at[me], at[me + half]);
            if (Mended) {
                __syncwarp();
            }
            at[me] = sum;
            if (Mended) {
                __syncwarp();
            }
        }
    }
    if (me == 0) {
        partial[blockIdx.x] = at[0];
    }
}

// The barrier between the steps left out: a warp goes on before the others have added. Nothing promises that warps keep
// pace; here the first one is ahead of the others by so many cycles that the mistake shows every time. Blocks of 256.
template <bool Mended>
__global__ void barriers(const int *in, int *partial, size_t n)
{
    __shared__ volatile int at[256];
    const unsigned me = threadIdx.x;
    const int mine = sum_of_thread(in, n);
    const long long start = clock64();
    while (me >= 32 && clock64() - start < 5000) {
    }
    at[me] = mine;
    for (unsigned half = 128; half > 0; half /= 2) {
        if (Mended) {
            __syncthreads();
        }
        if (me < half) {
            at[me] = plus<int>(at[me], at[me + half]);
        }
    }
    if (me == 0) {
        partial[blockIdx.x] = at[0];
    }
}

// Document A's neighbouring pairs. Threads past n return, but no check asks whether the partner exists: the last block
// reads behind the array.
template <bool Mended>
__global__ void neighbored(int *data, int *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x;
    int *block = data + first;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned partner = threadIdx.x + stride;
        const bool there = Mended ? first + partner < n : first + threadIdx.x < n;
        if (threadIdx.x % (2 * stride) == 0 && there) {
            block[threadIdx.x] = plus(block[threadIdx.x], block[partner]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// Document A's eight blocks' worth per block. A thread whose eighth element is missing adds none of the other six.
template <bool Mended>
__global__ void unrolled(int *data, int *partial, unsigned n)
{
    const unsigned first = blockIdx.x * blockDim.x * 8;
    const unsigned at = first + threadIdx.x;
    int *block = data + first;
    if (Mended || at + 7 * blockDim.x < n) {
        for (unsigned k = 1; k < 8 && at + k * blockDim.x < n; ++k) {
            data[at] = plus(data[at], data[at + k * blockDim.x]);
        }
    }
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && at + stride < n) {
            block[threadIdx.x] = plus(block[threadIdx.x], block[threadIdx.x + stride]);
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = block[0];
    }
}

// Document A's number of a thread in a block of three dimensions, which leaves out a factor. Each thread stores its number
// where its lane and that number's warp say: in order, if a warp is 32 threads with neighbouring numbers. One block.
template <bool Mended>
__global__ void numbering(unsigned *out)
{
    const unsigned rows = Mended ? threadIdx.z * blockDim.y + threadIdx.y : threadIdx.y;
    const unsigned planes = Mended ? 0 : threadIdx.z * blockDim.y;
    const unsigned number = planes + rows * blockDim.x + threadIdx.x;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[number / 32 * 32 + lane] = number;
}
