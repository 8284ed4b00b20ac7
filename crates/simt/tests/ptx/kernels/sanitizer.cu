// Kernels for the sanitizer: each fault, followed by a correct version.
// sanitizer.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo.

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda_pipeline.h>
namespace cg = cooperative_groups;

// Adds neighbours in place, in global memory: without the barrier, warps race at their ends.
extern "C" __global__ void global_race(int *data, int n)
{
    const int next = data[(threadIdx.x + 1) % n];
    data[threadIdx.x] += next;
}

extern "C" __global__ void global_race_mended(int *data, int n)
{
    const int next = data[(threadIdx.x + 1) % n];
    __syncthreads();
    data[threadIdx.x] += next;
}

// The last element of a block's tile is also the first one of the next block's.
extern "C" __global__ void block_race(int *data)
{
    const int first = blockIdx.x * blockDim.x;
    data[first + threadIdx.x + 1] = threadIdx.x;
    if (threadIdx.x == 0) {
        data[first] = -1;
    }
}

extern "C" __global__ void block_race_mended(int *data)
{
    const int first = blockIdx.x * (blockDim.x + 1);
    data[first + threadIdx.x + 1] = threadIdx.x;
    if (threadIdx.x == 0) {
        data[first] = -1;
    }
}

// A stencil. In place, it races: a block reads what its neighbour writes. A separate `out` avoids the race.
extern "C" __global__ void stencil(const int *in, int *out, int n)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const int left = at > 0 ? in[at - 1] : 0;
    const int right = at + 1 < n ? in[at + 1] : 0;
    __syncthreads();
    out[at] = left + right;
}

// All blocks set the same flag to the same value.
extern "C" __global__ void same_flag(bool *found, int *count)
{
    if (threadIdx.x % 7 == 3) {
        *found = true;
        count[0] = 12;
    }
}

// The first block clears a counter that the others are adding to.
extern "C" __global__ void clears_counter(int *count)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *count = 0;
    }
    atomicAdd(count, 1);
}

// The last block adds up what all others have stored, with and without a fence between the store and the ticket.
template <bool Fenced>
__device__ void last_block(const int *data, int *partial, unsigned *done, int *sum)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = data[blockIdx.x];
        if (Fenced) {
            __threadfence();
        }
        last = atomicAdd(done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int all = 0;
        for (int i = 0; i < gridDim.x; i++) {
            all += partial[i];
        }
        *sum = all;
        *done = 0;
    }
}

extern "C" __global__ void no_fence(const int *data, int *partial, unsigned *done, int *sum)
{
    last_block<false>(data, partial, done, sum);
}

extern "C" __global__ void no_fence_mended(const int *data, int *partial, unsigned *done, int *sum)
{
    last_block<true>(data, partial, done, sum);
}

// Each step reads what other blocks wrote in the step before. A grid barrier follows every step, or only the first.
template <bool Synced>
__device__ void grid_steps(int *data, int n, int steps)
{
    auto grid = cg::this_grid();
    const int at = grid.thread_rank();
    for (int step = 0; step < steps; step++) {
        const int other = data[(at + 65) % n];
        grid.sync();
        data[at] = other + 1;
        if (Synced || step == 0) {
            grid.sync();
        }
    }
}

extern "C" __global__ void grid_race(int *data, int n, int steps) { grid_steps<false>(data, n, steps); }
extern "C" __global__ void grid_race_mended(int *data, int n, int steps) { grid_steps<true>(data, n, steps); }

// A tree reduction in shared memory by one warp, as written before Volta.
template <bool Synced>
__device__ void warp_tree(const int *data, int *out)
{
    __shared__ int tile[64];
    const int lane = threadIdx.x;
    tile[lane] = data[lane];
    tile[lane + 32] = data[lane + 32];
    __syncthreads();
    for (int stride = 32; stride > 0; stride /= 2) {
        const int value = tile[lane] + tile[lane + stride];
        if (Synced) {
            __syncwarp();
        }
        tile[lane] = value;
        if (Synced) {
            __syncwarp();
        }
    }
    out[lane] = tile[0];
}

extern "C" __global__ void warp_race(const int *data, int *out) { warp_tree<false>(data, out); }
extern "C" __global__ void warp_race_mended(const int *data, int *out) { warp_tree<true>(data, out); }

// The tree reduction with volatile accesses, which keep the compiler from reordering but do not order the lanes.
extern "C" __global__ void warp_volatile(const int *data, int *out)
{
    __shared__ int tile[64];
    const int lane = threadIdx.x;
    tile[lane] = data[lane];
    tile[lane + 32] = data[lane + 32];
    __syncthreads();
    volatile int *v = tile;
    v[lane] += v[lane + 32];
    v[lane] += v[lane + 16];
    out[lane] = v[lane];
}

// A histogram that is read before all threads have added to it.
template <bool Synced>
__device__ void counted(const int *data, int *out)
{
    __shared__ int bins[64];
    bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[data[threadIdx.x] & 63], 1);
    if (Synced) {
        __syncthreads();
    }
    out[threadIdx.x] = bins[threadIdx.x];
}

extern "C" __global__ void early_read(const int *data, int *out) { counted<false>(data, out); }
extern "C" __global__ void early_read_mended(const int *data, int *out) { counted<true>(data, out); }

// A histogram whose bins are cleared while other threads add to them.
extern "C" __global__ void late_clear(const int *data, int *out)
{
    __shared__ int bins[64];
    bins[threadIdx.x] = 0;
    atomicAdd(&bins[data[threadIdx.x] & 63], 1);
    __syncthreads();
    out[threadIdx.x] = bins[threadIdx.x];
}

// An asynchronous copy: 0 waits for nothing, 1 only for the thread's own copy, 2 for all copies.
template <int Care>
__device__ void copied(const int *data, int *out)
{
    __shared__ __align__(16) int tile[128];
    __pipeline_memcpy_async(&tile[threadIdx.x * 2], &data[threadIdx.x * 2], 8);
    __pipeline_commit();
    if (Care > 0) {
        __pipeline_wait_prior(0);
    }
    if (Care != 1) {
        __syncthreads();
    }
    out[threadIdx.x] = tile[127 - threadIdx.x];
}

extern "C" __global__ void copy_not_awaited(const int *data, int *out) { copied<0>(data, out); }
extern "C" __global__ void copy_no_barrier(const int *data, int *out) { copied<1>(data, out); }
extern "C" __global__ void copy_mended(const int *data, int *out) { copied<2>(data, out); }

// Two stages in flight: the correct wait leaves one group pending, the early one leaves both.
template <int Left>
__device__ void two_stages(const int *data, int *out)
{
    __shared__ int tile[2][32];
    for (int stage = 0; stage < 2; stage++) {
        __pipeline_memcpy_async(&tile[stage][threadIdx.x], &data[stage * 32 + threadIdx.x], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(Left);
    __syncthreads();
    int sum = tile[0][31 - threadIdx.x];
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = sum + tile[1][31 - threadIdx.x];
}

extern "C" __global__ void stages_early(const int *data, int *out) { two_stages<2>(data, out); }
extern "C" __global__ void stages_mended(const int *data, int *out) { two_stages<1>(data, out); }

// Each thread fills half of an array and sums up `upto` of its elements.
extern "C" __global__ void local_sum(const int *data, int *out, int upto)
{
    int mine[32];
    for (int i = 0; i < 16; i++) {
        mine[(data[i] + threadIdx.x) & 31] = i;
    }
    int sum = 0;
    for (int i = 0; i < upto; i++) {
        sum += mine[(data[i] + threadIdx.x) & 31];
    }
    out[threadIdx.x] = sum;
}

// An index beyond the end of a thread's own array.
extern "C" __global__ void local_out_of_range(const int *data, int *out)
{
    int mine[8];
    for (int i = 0; i < 8; i++) {
        mine[data[i]] = i;
    }
    out[threadIdx.x] = mine[data[threadIdx.x]];
}

// Warps of a block that wait at two different barriers; different thread counts; a barrier for part of the block.
extern "C" __global__ void two_places(int *out)
{
    if (threadIdx.x < 32) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();
    }
}

extern "C" __global__ void counts_differ(int *out)
{
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 96;" ::: "memory");
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void too_few(int *out)
{
    if (threadIdx.x < 64) {
        asm volatile("bar.sync 1, 96;" ::: "memory");
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void some_wait(int *out)
{
    if (threadIdx.x >= 32) {
        return;
    }
    __syncthreads();
    out[threadIdx.x] = 1;
}

extern "C" __global__ void half_waits(int *out)
{
    if (threadIdx.x < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
    }
    out[threadIdx.x] = 1;
}

// The two sides of a branch within a warp each reach their own barrier.
extern "C" __global__ void both_sides(int *out)
{
    if (threadIdx.x % 2) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

// A shuffle whose mask names lanes that have exited; a vote whose mask omits the calling lane.
extern "C" __global__ void shuffle_from_gone(int *out)
{
    if (threadIdx.x >= 16) {
        return;
    }
    out[threadIdx.x] = __shfl_down_sync(0xffffffff, (int)threadIdx.x, 16);
}

extern "C" __global__ void stranger_votes(int *out)
{
    out[threadIdx.x] = __ballot_sync(0x0000ffff, threadIdx.x & 1);
}

// Passes a value from block to block through a flag, with and without a fence.
template <bool Fenced>
__device__ void hand_over(int *data, int *flag)
{
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0) {
            while (((volatile int *)flag)[blockIdx.x - 1] == 0) {
            }
            __threadfence();
            data[blockIdx.x] += data[blockIdx.x - 1];
        }
        if (Fenced) {
            __threadfence();
        }
        ((volatile int *)flag)[blockIdx.x] = 1;
    }
}

extern "C" __global__ void flag_race(int *data, int *flag)
{
    if (threadIdx.x == 0) {
        if (blockIdx.x > 0) {
            while (((volatile int *)flag)[blockIdx.x - 1] == 0) {
            }
            data[blockIdx.x] += data[blockIdx.x - 1];
        }
        ((volatile int *)flag)[blockIdx.x] = 1;
    }
}

extern "C" __global__ void flag_mended(int *data, int *flag) { hand_over<true>(data, flag); }

// Passes a value backwards through a flag: each block waits for the next one.
extern "C" __global__ void backwards(int *data, int *flag)
{
    if (threadIdx.x == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> mine(flag[blockIdx.x]);
        if (blockIdx.x + 1 < gridDim.x) {
            cuda::atomic_ref<int, cuda::thread_scope_device> next(flag[blockIdx.x + 1]);
            while (next.load(cuda::memory_order_acquire) == 0) {
            }
            data[blockIdx.x] += data[blockIdx.x + 1];
        }
        mine.store(1, cuda::memory_order_release);
    }
}

// Each block takes a ticket and enters in ticket order. `log` records the order, and `sum` depends on it.
extern "C" __global__ void ticket_lock(unsigned *next, unsigned *serving, int *log, int *sum)
{
    if (threadIdx.x == 0) {
        const unsigned ticket = atomicAdd(next, 1);
        while (*(volatile unsigned *)serving != ticket) {
        }
        __threadfence();
        log[ticket] = blockIdx.x;
        *sum = *sum * 3 + (int)blockIdx.x;
        __threadfence();
        atomicAdd(serving, 1);
    }
}

// An inclusive scan in one pass: each block looks back at what its predecessors have published, which is their sum (1)
// or their prefix (2), packed with the value.
extern "C" __global__ void look_back(const int *data, int *out, unsigned *ticket, unsigned long long *state)
{
    __shared__ unsigned tile;
    __shared__ int before;
    __shared__ int values[64];
    if (threadIdx.x == 0) {
        tile = atomicAdd(ticket, 1);
    }
    __syncthreads();
    const unsigned at = tile * blockDim.x + threadIdx.x;
    values[threadIdx.x] = data[at];
    __syncthreads();
    for (int by = 1; by < blockDim.x; by *= 2) {
        const int add = threadIdx.x >= by ? values[threadIdx.x - by] : 0;
        __syncthreads();
        values[threadIdx.x] += add;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const unsigned sum = values[blockDim.x - 1];
        using Word = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;
        Word(state[tile]).store((1ull << 32) | sum, cuda::memory_order_relaxed);
        unsigned prefix = 0;
        for (int back = (int)tile - 1; back >= 0;) {
            const unsigned long long seen = Word(state[back]).load(cuda::memory_order_relaxed);
            if (seen >> 32 == 0) {
                continue;
            }
            prefix += (unsigned)seen;
            if (seen >> 32 == 2) {
                break;
            }
            back--;
        }
        Word(state[tile]).store((2ull << 32) | (prefix + sum), cuda::memory_order_relaxed);
        before = prefix;
    }
    __syncthreads();
    out[at] = before + values[threadIdx.x];
}

// The last block has the first turn: each block waits until all later ones have been served.
extern "C" __global__ void last_first(int *turn, int *log)
{
    if (threadIdx.x == 0) {
        while (atomicAdd(turn, 0) != gridDim.x - 1 - blockIdx.x) {
        }
        log[gridDim.x - 1 - blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(turn, 1);
    }
}

// One warp passes a value to another through a flag in shared memory, with fences of block scope.
extern "C" __global__ void flag_in_block(int *out)
{
    __shared__ int value;
    __shared__ volatile int ready;
    if (threadIdx.x == 0) {
        ready = 0;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 5;
        __threadfence_block();
        ready = 1;
    } else if (threadIdx.x == 32) {
        while (ready == 0) {
        }
        __threadfence_block();
        out[0] = value;
    }
}

// The bytes of a word belong to different warps and blocks.
extern "C" __global__ void bytes_apart(char *data)
{
    __shared__ char tile[64];
    const int at = threadIdx.x % 32 * 2 + threadIdx.x / 32;
    tile[at] = threadIdx.x;
    data[at * gridDim.x + blockIdx.x] = tile[at];
}

// One thread of each block waits for a later block; the other threads wait for it at the block's barrier.
extern "C" __global__ void block_waits_for_later(volatile int *flag, int *out)
{
    if (threadIdx.x == 0) {
        while (blockIdx.x + 1 < gridDim.x && flag[blockIdx.x + 1] == 0) {
        }
        flag[blockIdx.x] = 1;
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
}

// Lanes of a warp contend for a lock in a grid whose blocks take turns. Each thread adds one to `sum`.
extern "C" __global__ void lock_in_turn(int *lock, int *sum)
{
    cg::this_grid().sync();
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *sum = *sum + 1;
    __threadfence();
    atomicExch(lock, 0);
}
