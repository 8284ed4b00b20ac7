// Bulk copies: tiles that come while others are worked on, and go back the same way.

#include <cuda/barrier>
#include <cuda/ptx>

namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int TILE = 256;

// Two buffers in turn: one tile is summed while the next one comes.
extern "C" __global__ void double_buffered(const int *in, int *out, int tiles)
{
    __shared__ alignas(128) int tile[2][TILE];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier arrived[2];
    if (threadIdx.x == 0) {
        init(&arrived[0], blockDim.x);
        init(&arrived[1], blockDim.x);
    }
    __syncthreads();
    const int *mine = in + size_t(blockIdx.x) * tiles * TILE;
    auto fetch = [&](int t) {
        if (threadIdx.x == 0)
            cuda::memcpy_async(tile[t % 2], mine + t * TILE, cuda::aligned_size_t<16>(sizeof(tile[0])), arrived[t % 2]);
    };
    fetch(0);
    int sum = 0;
    for (int t = 0; t < tiles; ++t) {
        if (t + 1 < tiles)
            fetch(t + 1);
        arrived[t % 2].arrive_and_wait();
        for (int k = threadIdx.x; k < TILE; k += blockDim.x)
            sum += tile[t % 2][k];
        __syncthreads();
    }
    atomicAdd(out + blockIdx.x, sum);
}

// A tile comes, is changed, and goes.
extern "C" __global__ void there_and_back(const float *in, float *out, float factor)
{
    __shared__ alignas(128) float tile[TILE];
    __shared__ barrier arrived;
    if (threadIdx.x == 0) {
        init(&arrived, blockDim.x);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    size_t start = size_t(blockIdx.x) * TILE;
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        cuda::device::memcpy_async_tx(tile, in + start, cuda::aligned_size_t<16>(sizeof(tile)), arrived);
        token = cuda::device::barrier_arrive_tx(arrived, 1, sizeof(tile));
    } else {
        token = arrived.arrive();
    }
    arrived.wait(std::move(token));
    for (int k = threadIdx.x; k < TILE; k += blockDim.x)
        tile[k] *= factor;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + start, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

// One warp fetches, the others work: full and empty stages of a ring are told to each other.
extern "C" __global__ void ring(const int *in, int *out, int tiles)
{
    constexpr int STAGES = 3;
    __shared__ alignas(128) int stage[STAGES][TILE];
    __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
    int workers = blockDim.x - 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            ptx::mbarrier_init(&full[s], 1);
            ptx::mbarrier_init(&empty[s], workers);
        }
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    const int *mine = in + size_t(blockIdx.x) * tiles * TILE;
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            for (int t = 0; t < tiles; ++t) {
                int s = t % STAGES, round = t / STAGES;
                while (!ptx::mbarrier_try_wait_parity(&empty[s], (round & 1) ^ 1)) {
                }
                ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[s],
                                               sizeof(stage[0]));
                ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[s], mine + t * TILE, sizeof(stage[0]),
                                   &full[s]);
            }
        }
        return;
    }
    int worker = threadIdx.x - 32, most = INT_MIN;
    for (int t = 0; t < tiles; ++t) {
        int s = t % STAGES, round = t / STAGES;
        while (!ptx::mbarrier_try_wait_parity(&full[s], round & 1)) {
        }
        for (int k = worker; k < TILE; k += workers)
            most = max(most, stage[s][k]);
        ptx::mbarrier_arrive(&empty[s]);
    }
    atomicMax(out + blockIdx.x, most);
}

// What goes wrong. The tile is read before it was waited for.
extern "C" __global__ void not_waited(const int *in, int *out)
{
    __shared__ alignas(128) int tile[TILE];
    __shared__ barrier arrived;
    if (threadIdx.x == 0)
        init(&arrived, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0)
        cuda::memcpy_async(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), arrived);
    (void)arrived.arrive();
    out[threadIdx.x] = tile[threadIdx.x];
}

// Only the first warp waits.
extern "C" __global__ void half_waited(const int *in, int *out)
{
    __shared__ alignas(128) int tile[TILE];
    __shared__ barrier arrived;
    if (threadIdx.x == 0)
        init(&arrived, 1);
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0) {
            cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), arrived);
            (void)cuda::device::barrier_arrive_tx(arrived, 1, sizeof(tile));
        }
        arrived.wait_parity(false);
    }
    out[threadIdx.x] = tile[threadIdx.x];
}

// The tile is sent away with no fence behind what the threads have stored.
extern "C" __global__ void not_fenced(int *out)
{
    __shared__ alignas(128) int tile[TILE];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// The tile is stored to while it is still being sent.
extern "C" __global__ void not_read(int *out)
{
    __shared__ alignas(128) int tile[TILE];
    for (int round = 0; round < 2; ++round) {
        tile[threadIdx.x] = threadIdx.x + round;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + round * TILE, tile, sizeof(tile));
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<1>());
        }
        __syncthreads();
    }
}

// The block ends while its shared memory is still being read.
extern "C" __global__ void not_stayed(int *out)
{
    __shared__ alignas(128) int tile[TILE];
    tile[threadIdx.x] = threadIdx.x;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
    }
}
