// Clusters whose blocks send to each other: bulk copies to several blocks, words and reductions through the cluster, bulk
// reductions.

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int BLOCKS = 4, TILE = 256, THREADS = 128;

__device__ void expect(uint64_t *object, unsigned bytes)
{
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, object, bytes);
}

__device__ void wait(uint64_t *object, unsigned parity)
{
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, object, parity)) {
    }
}

// A bulk copy to the blocks of the cluster whose bits are set. The library has it for sm_90a alone, where it is fastest.
__device__ void multicast(void *to, const void *from, unsigned bytes, uint64_t *object, uint16_t blocks)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
                   "r"((unsigned)__cvta_generic_to_shared(object)), "h"(blocks)
                 : "memory");
}

// A matrix times a vector. Each block of a cluster has rows of its own; pieces of the vector come to all of them at once,
// each from another block. A piece is fetched again when all blocks are done with the one before.
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) spread(const int *matrix, const int *vector, int *out, int n)
{
    __shared__ alignas(128) int piece[TILE];
    __shared__ alignas(8) uint64_t came, done;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned me = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&came, 1);
        ptx::mbarrier_init(&done, BLOCKS);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    const int *row = matrix + size_t(blockIdx.x * THREADS + threadIdx.x) * n;
    int sum = 0;
    for (int t = 0; t < n / TILE; ++t) {
        if (threadIdx.x == 0) {
            expect(&came, sizeof(piece));
            if (me == unsigned(t % BLOCKS)) {
                // All blocks have said that they expect it, or else that they are done with the last one.
                if (t > 0)
                    wait(&done, ((t - 1) / BLOCKS) & 1);
                multicast(piece, vector + t * TILE, sizeof(piece), &came, (1 << BLOCKS) - 1);
            }
        }
        wait(&came, t & 1);
        for (int k = 0; k < TILE; ++k)
            sum += row[t * TILE + k] * piece[k];
        __syncthreads();
        // The block that fetches next is told by all.
        if (threadIdx.x == 0)
            ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                                 cluster.map_shared_rank(&done, (t + 1) % BLOCKS));
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
    cluster.sync();
}

// Values change places between the blocks of a cluster: each block sends a part of its own to every block, by words, by
// pairs and by fours, and waits for what comes.
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) transpose(const int *in, int *out, int width)
{
    __shared__ alignas(16) int mine[THREADS * BLOCKS];
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned me = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&came, 1);
        expect(&came, sizeof(mine));
    }
    cluster.sync();
    const int *from = in + blockIdx.x * THREADS * BLOCKS;
    for (int to = 0; to < BLOCKS; ++to) {
        int *there = cluster.map_shared_rank(mine, to) + me * THREADS;
        uint64_t *object = cluster.map_shared_rank(&came, to);
        const int *part = from + to * THREADS;
        int at = threadIdx.x * width;
        if (at < THREADS) {
            if (width == 1) {
                ptx::st_async(there + at, part[at], object);
            } else if (width == 2) {
                const int two[2] = {part[at], part[at + 1]};
                ptx::st_async(there + at, two, object);
            } else {
                const int four[4] = {part[at], part[at + 1], part[at + 2], part[at + 3]};
                ptx::st_async(there + at, four, object);
            }
        }
    }
    wait(&came, 0);
    for (int k = threadIdx.x; k < THREADS * BLOCKS; k += blockDim.x)
        out[blockIdx.x * THREADS * BLOCKS + k] = mine[k];
    cluster.sync();
}

// A histogram whose bins are spread over the blocks of a cluster, counted by reductions through the cluster that the
// owner of the bins waits for; largest and all bits beside it. Block 0 of the cluster has what all of them say together.
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) histogram(const int *in, int each, unsigned *out, int bins)
{
    extern __shared__ unsigned counts[];
    __shared__ unsigned largest, bits;
    __shared__ unsigned long long sum;
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned own = bins / BLOCKS;
    for (unsigned k = threadIdx.x; k < own; k += blockDim.x)
        counts[k] = 0;
    if (threadIdx.x == 0) {
        largest = bits = 0;
        sum = 0;
        ptx::mbarrier_init(&came, 1);
    }
    cluster.sync();
    const int *mine = in + size_t(blockIdx.x) * each;
    // How much comes is known once all have counted what they send to whom.
    __shared__ unsigned sent[BLOCKS];
    if (threadIdx.x < BLOCKS)
        sent[threadIdx.x] = 0;
    __syncthreads();
    unsigned me = cluster.block_rank();
    for (int k = threadIdx.x; k < each; k += blockDim.x)
        if (mine[k] / own != me)
            atomicAdd(&sent[mine[k] / own], 4);
    cluster.sync();
    if (threadIdx.x == 0) {
        unsigned bytes = me == 0 ? (BLOCKS - 1) * 16 : 0;
        for (int rank = 0; rank < BLOCKS; ++rank)
            bytes += cluster.map_shared_rank(sent, rank)[me];
        expect(&came, bytes);
    }
    unsigned long long total = 0;
    unsigned most = 0, all = 0;
    for (int k = threadIdx.x; k < each; k += blockDim.x) {
        unsigned bin = mine[k];
        if (bin / own == me)
            atomicAdd(counts + bin % own, 1);
        else
            ptx::red_async(ptx::op_add, cluster.map_shared_rank(counts, bin / own) + bin % own, 1u,
                           cluster.map_shared_rank(&came, bin / own));
        total += bin, most = max(most, bin), all |= bin;
    }
    __shared__ unsigned long long part;
    __shared__ unsigned block_most, block_all;
    if (threadIdx.x == 0)
        part = 0, block_most = block_all = 0;
    __syncthreads();
    atomicAdd(&part, total);
    atomicMax(&block_most, most);
    atomicOr(&block_all, all);
    __syncthreads();
    if (threadIdx.x == 0 && me == 0) {
        atomicAdd(&sum, part);
        atomicMax(&largest, block_most);
        atomicOr(&bits, block_all);
    } else if (threadIdx.x == 0) {
        uint64_t *object = cluster.map_shared_rank(&came, 0);
        ptx::red_async(ptx::op_add, (uint64_t *)cluster.map_shared_rank(&sum, 0), (uint64_t)part, object);
        ptx::red_async(ptx::op_max, cluster.map_shared_rank(&largest, 0), block_most, object);
        ptx::red_async(ptx::op_or_op, cluster.map_shared_rank(&bits, 0), block_all, object);
    }
    wait(&came, 0);
    __syncthreads();
    unsigned *to = out + (blockIdx.x / BLOCKS) * (bins + 4);
    for (unsigned k = threadIdx.x; k < own; k += blockDim.x)
        to[4 + me * own + k] = counts[k];
    if (me == 0 && threadIdx.x == 0) {
        to[0] = (unsigned)sum, to[1] = (unsigned)(sum >> 32), to[2] = largest, to[3] = bits;
    }
    cluster.sync();
}

// Sums of columns: each block has a tile, which is added to that of the cluster's first block in its shared memory, and
// that to the sums of all clusters in global memory, as integers and as floats.
extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) columns(const int *in, int *sums, float *floats, int tiles)
{
    __shared__ alignas(128) int tile[TILE], all[TILE];
    __shared__ alignas(128) float as_float[TILE];
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    bool first = cluster.block_rank() == 0;
    const int *mine = in + size_t(blockIdx.x) * tiles * TILE;
    for (int k = threadIdx.x; k < TILE; k += blockDim.x) {
        int sum = 0;
        for (int t = 0; t < tiles; ++t)
            sum += mine[t * TILE + k];
        tile[k] = all[k] = sum;
    }
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&came, 1);
        if (first)
            expect(&came, (BLOCKS - 1) * sizeof(tile));
    }
    ptx::fence_proxy_async();
    cluster.sync();
    if (threadIdx.x == 0 && !first)
        ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(all, 0), tile,
                                  sizeof(tile), cluster.map_shared_rank(&came, 0));
    if (first) {
        wait(&came, 0);
        for (int k = threadIdx.x; k < TILE; k += blockDim.x)
            as_float[k] = all[k];
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, all, sizeof(all));
            ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, floats, as_float, sizeof(as_float));
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
        }
    }
    cluster.sync();
}

// What goes wrong. A block reads what others add to before it has waited.
extern "C" __global__ void __cluster_dims__(2, 1, 1) not_waited(int *out)
{
    __shared__ int sum;
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        sum = 0;
        ptx::mbarrier_init(&came, 1);
        expect(&came, 4);
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        unsigned other = cluster.block_rank() ^ 1;
        ptx::red_async(ptx::op_add, cluster.map_shared_rank(&sum, other), 5, cluster.map_shared_rank(&came, other));
        if (cluster.block_rank() == 1)
            out[0] = sum;
    }
    cluster.sync();
}

// A block is sent something to what it may still be reading.
extern "C" __global__ void __cluster_dims__(2, 1, 1) not_asked(int *out)
{
    __shared__ alignas(16) int word;
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        word = 1;
        ptx::mbarrier_init(&came, 1);
        expect(&came, 4);
    }
    cluster.sync();
    if (cluster.block_rank() == 0) {
        out[threadIdx.x] = word;
    } else if (threadIdx.x == 0) {
        ptx::st_async(cluster.map_shared_rank(&word, 0), 2, cluster.map_shared_rank(&came, 0));
    }
    cluster.sync();
}

// A word goes to one block, and another one is told.
extern "C" __global__ void __cluster_dims__(2, 1, 1) told_elsewhere(int *out)
{
    __shared__ alignas(16) int word;
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&came, 1);
        expect(&came, 4);
    }
    cluster.sync();
    if (threadIdx.x == 0)
        ptx::st_async(cluster.map_shared_rank(&word, cluster.block_rank() ^ 1), 2, &came);
    cluster.sync();
    out[0] = 1;
}

// Threads of another block have stored what is added to, and have not told bulk copies.
extern "C" __global__ void __cluster_dims__(2, 1, 1) not_fenced(int *out)
{
    __shared__ alignas(128) int tile[TILE], all[TILE];
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    tile[threadIdx.x] = 1;
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    all[threadIdx.x] = 2;
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&came, 1);
        expect(&came, sizeof(tile));
    }
    cluster.sync();
    unsigned other = cluster.block_rank() ^ 1;
    if (threadIdx.x == 0)
        ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(all, other),
                                  tile, sizeof(tile), cluster.map_shared_rank(&came, other));
    wait(&came, 0);
    out[threadIdx.x] = all[threadIdx.x];
    cluster.sync();
}

// Sums with bytes that were never written.
extern "C" __global__ void unwritten(int *out)
{
    __shared__ alignas(128) int tile[TILE];
    tile[threadIdx.x] = 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, sizeof(tile));
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
}

// A piece for all blocks comes before one of them is done with the last.
extern "C" __global__ void __cluster_dims__(2, 1, 1) too_soon(const int *in, int *out)
{
    __shared__ alignas(128) int piece[TILE];
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        ptx::mbarrier_init(&came, 1);
    cluster.sync();
    for (int t = 0; t < 2; ++t) {
        if (threadIdx.x == 0) {
            expect(&came, sizeof(piece));
            if (cluster.block_rank() == 0)
                multicast(piece, in + t * TILE, sizeof(piece), &came, 3);
        }
        wait(&came, t & 1);
        out[(blockIdx.x * 2 + t) * TILE + threadIdx.x] = piece[threadIdx.x];
        __syncthreads();
    }
    cluster.sync();
}
