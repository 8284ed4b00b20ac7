// Kernels that use features other than arithmetic. Each comment says what the kernel outputs.
// features.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo.

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Prints the thread and block indices, 1.5 times the thread index, and the first element.
extern "C" __global__ void print(const int *data)
{
    printf("thread %d of block %d: %.2f %s %lld\n", threadIdx.x, blockIdx.x, 1.5 * threadIdx.x, "text", (long long)data[0]);
}

// Reverses `data` over the whole grid, with two grid barriers.
extern "C" __global__ void grid_reverse(int *data, int n)
{
    auto grid = cg::this_grid();
    const int at = grid.thread_rank();
    data[at] = at;
    grid.sync();
    const int other = data[n - 1 - at];
    grid.sync();
    data[at] = other;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// out[t] = fibonacci(t mod 12); lanes recurse to different depths.
extern "C" __global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ int plus_one(int x) { return x + 1; }
__device__ int twice(int x) { return x * 2; }
__device__ int squared(int x) { return x * x; }
typedef int (*Function)(int);
__device__ Function table[3] = {plus_one, twice, squared};

// out[t] = table[t mod 3](out[t]).
extern "C" __global__ void indirect(int *out) { out[threadIdx.x] = table[threadIdx.x % 3](out[threadIdx.x]); }

// Each thread adds one to `counter` under the same lock.
extern "C" __global__ void spin_lock(int *lock, int *counter)
{
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *(volatile int *)counter = *(volatile int *)counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// out[t] = sum over i of table[(i k + i t) mod 32], with table[i] = data[i] k in local memory.
extern "C" __global__ void local_array(const int *data, int *out, int k)
{
    int table[32];
    for (int i = 0; i < 32; i++) {
        table[i] = data[i] * k;
    }
    int sum = 0;
    for (int i = 0; i < 32; i++) {
        sum += table[(i * k + threadIdx.x * i) & 31];
    }
    out[threadIdx.x] = sum;
}

struct Many {
    int v[20];
};

// out[t] = many.v[t mod 20].
extern "C" __global__ void by_value(Many many, int *out) { out[threadIdx.x] = many.v[threadIdx.x % 20]; }

// Sums over eight neighbours; lanes divisible by three also add 1000 times the size of their group.
extern "C" __global__ void partitions(int *data)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = data[threadIdx.x];
    for (int by = 4; by > 0; by /= 2) {
        v += tile.shfl_down(v, by);
    }
    data[threadIdx.x] = v;
    if (threadIdx.x % 3 == 0) {
        auto group = cg::coalesced_threads();
        data[threadIdx.x] += group.size() * 1000;
    }
}

// out[t] = t, passed through a piece of the device heap; every second piece is freed.
extern "C" __global__ void heap(int *out)
{
    int *piece = (int *)malloc(16);
    piece[3] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = piece[3];
    if (threadIdx.x % 2) {
        free(piece);
    }
}

// The sum shows the order of float additions: 1e8 first, then threes, in block order.
extern "C" __global__ void float_sum(float *sum)
{
    if (threadIdx.x == 0) {
        atomicAdd(sum, blockIdx.x == 0 ? 1e8f : 3.0f);
    }
}

// tickets[b] = number of blocks that took a ticket before block b.
extern "C" __global__ void tickets(unsigned *next, unsigned *out)
{
    if (threadIdx.x == 0) {
        out[blockIdx.x] = atomicAdd(next, 1);
    }
}

// The last block to finish adds up the partial sums of all blocks.
extern "C" __global__ void last_block(const int *data, int *partial, unsigned *done, int *sum)
{
    __shared__ int total;
    __shared__ bool last;
    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    atomicAdd(&total, data[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = total;
        __threadfence();
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x; i++) {
            all += ((volatile int *)partial)[i];
        }
        *sum = all;
    }
}

// Block 0 waits for a store by the last block.
extern "C" __global__ void waits_for_later(int *flag, int *out)
{
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) {
            while (*(volatile int *)flag == 0) {
            }
            *out = *(volatile int *)flag;
        } else if (blockIdx.x == gridDim.x - 1) {
            *(volatile int *)flag = 7;
        }
    }
}

extern __shared__ int dynamic[];

// Reverses `data` within each block, through dynamic shared memory that follows a static array.
extern "C" __global__ void dynamic_shared(int *data)
{
    __shared__ int pad[5];
    pad[threadIdx.x % 5] = 0;
    dynamic[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x] + pad[0];
}

// Column sums of a 32 by 32 tile: without padding, all lanes of a warp access the same bank.
extern "C" __global__ void column_sums(const int *data, int *out)
{
    __shared__ int tile[32][32];
    tile[threadIdx.y][threadIdx.x] = data[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
