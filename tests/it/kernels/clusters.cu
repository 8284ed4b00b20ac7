// Thread block clusters: blocks that run together and reach each other's shared memory.

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// A histogram whose bins are spread over the blocks of a cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1) histogram(const int *in, int n, int *out, int bins)
{
    extern __shared__ int mine[];
    cg::cluster_group cluster = cg::this_cluster();
    int each = bins / cluster.num_blocks();
    for (int k = threadIdx.x; k < each; k += blockDim.x)
        mine[k] = 0;
    cluster.sync();
    for (int k = cg::this_grid().thread_rank(); k < n; k += cg::this_grid().size()) {
        int bin = in[k];
        atomicAdd(cluster.map_shared_rank(mine, bin / each) + bin % each, 1);
    }
    cluster.sync();
    int *to = out + cluster.block_rank() * each;
    for (int k = threadIdx.x; k < each; k += blockDim.x)
        atomicAdd(to + k, mine[k]);
}

// Every block sums its part; block 0 of the cluster reads the others' sums.
extern "C" __global__ void __cluster_dims__(2, 2, 2) sums(const int *in, int *out, int each)
{
    __shared__ int part;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        part = 0;
    __syncthreads();
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int sum = 0;
    for (int k = threadIdx.x; k < each; k += blockDim.x)
        sum += in[block * each + k];
    atomicAdd(&part, sum);
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        int all = 0;
        for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank)
            all += *cluster.map_shared_rank(&part, rank);
        dim3 at = {blockIdx.x / 2, blockIdx.y / 2, blockIdx.z / 2};
        out[(at.z * (gridDim.y / 2) + at.y) * (gridDim.x / 2) + at.x] = all;
    }
    cluster.sync();
}

// Each block hands its values to the next one of the ring, round after round, by stores and by loads.
extern "C" __global__ void __cluster_dims__(3, 1, 1) hand_on(const int *in, int *out, int rounds)
{
    __shared__ int now[64], next[64];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned n = cluster.num_blocks(), me = cluster.block_rank();
    now[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    cluster.sync();
    for (int r = 0; r < rounds; ++r) {
        if (r % 2 == 0) {
            cluster.map_shared_rank(next, (me + 1) % n)[threadIdx.x] = now[threadIdx.x] + 1;
        } else {
            next[threadIdx.x] = cluster.map_shared_rank(now, (me + n - 1) % n)[threadIdx.x] + 1;
        }
        cluster.sync();
        now[threadIdx.x] = next[threadIdx.x];
        auto token = cluster.barrier_arrive();
        cluster.barrier_wait(std::move(token));
    }
    out[blockIdx.x * 64 + threadIdx.x] = now[threadIdx.x];
}

// What a thread sees of its cluster.
extern "C" __global__ void __cluster_dims__(2, 3, 1) places(int *out)
{
    __shared__ int here;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0)
        here = blockIdx.y * gridDim.x + blockIdx.x;
    cluster.sync();
    dim3 place = cluster.block_index(), size = cluster.dim_blocks();
    int *first = cluster.map_shared_rank(&here, 0);
    int *to = out + 8 * (blockIdx.y * gridDim.x + blockIdx.x);
    if (threadIdx.x == 0) {
        to[0] = cluster.block_rank();
        to[1] = place.y * size.x + place.x;
        to[2] = cluster.num_blocks();
        to[3] = cluster.num_threads();
        to[4] = *first;
        to[5] = cluster.query_shared_rank(first);
        to[6] = cluster.query_shared_rank(&here);
        to[7] = cluster.thread_rank();
    }
    cluster.sync();
}

// A block sends a tile to the other one of its pair, which waits for its bytes.
extern "C" __global__ void __cluster_dims__(2, 1, 1) send(const int *in, int *out)
{
    __shared__ alignas(128) int from[128], to[128];
    __shared__ alignas(8) uint64_t came;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned other = cluster.block_rank() ^ 1;
    from[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
    if (threadIdx.x == 0)
        ptx::mbarrier_init(&came, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &came, sizeof(to));
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(to, other), from, sizeof(from),
                           cluster.map_shared_rank(&came, other));
    }
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &came, 0)) {
    }
    out[blockIdx.x * 128 + threadIdx.x] = to[threadIdx.x];
    cluster.sync();
}

// Blocks of a cluster tell each other by barrier objects, and write global memory in between.
extern "C" __global__ void __cluster_dims__(2, 1, 1) relay(int *out, int rounds)
{
    __shared__ alignas(8) uint64_t turn;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned me = cluster.block_rank();
    if (threadIdx.x == 0)
        ptx::mbarrier_init(&turn, 1);
    cluster.sync();
    int *word = out + blockIdx.x / 2;
    if (threadIdx.x == 0) {
        for (int r = 0; r < rounds; ++r) {
            if (r % 2 == me) {
                if (r > 0)
                    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &turn, ((r - 1) / 2) & 1)) {
                    }
                *word = *word * 2 + me;
                if (r + 1 < rounds)
                    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                                         cluster.map_shared_rank(&turn, me ^ 1));
            }
        }
    }
    cluster.sync();
}

// What goes wrong. The other block's memory is reached before the blocks have met.
extern "C" __global__ void __cluster_dims__(2, 1, 1) too_early(int *out)
{
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = 1;
    out[blockIdx.x] = *cluster.map_shared_rank(&word, cluster.block_rank() ^ 1);
    cluster.sync();
}

// A block ends while the other one may still read its memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) too_late(int *out, int reader)
{
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = blockIdx.x;
    cluster.sync();
    if (blockIdx.x == reader)
        out[0] = *cluster.map_shared_rank(&word, cluster.block_rank() ^ 1);
}

// A barrier of the block is none of the cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) not_met(int *out, int reader)
{
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = 7;
    cluster.sync();
    if (blockIdx.x != reader)
        word = blockIdx.x;
    __syncthreads();
    if (blockIdx.x == reader)
        out[0] = *cluster.map_shared_rank(&word, cluster.block_rank() ^ 1);
    cluster.sync();
}

// A block stores to what the other one reads as its own.
extern "C" __global__ void __cluster_dims__(2, 1, 1) not_asked(int *out)
{
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = 0;
    cluster.sync();
    if (cluster.block_rank() == 0)
        *cluster.map_shared_rank(&word, 1) = 5;
    else
        out[0] = word;
    cluster.sync();
}

// Two blocks store to the memory of a third.
extern "C" __global__ void __cluster_dims__(3, 1, 1) both_store(int *out)
{
    __shared__ int word;
    cg::cluster_group cluster = cg::this_cluster();
    word = 0;
    cluster.sync();
    if (cluster.block_rank() > 0)
        *cluster.map_shared_rank(&word, 0) = cluster.block_rank();
    cluster.sync();
    out[blockIdx.x] = word;
}

// Past the end of the other block's shared memory.
extern "C" __global__ void __cluster_dims__(2, 1, 1) beyond(int *out)
{
    __shared__ int words[4];
    cg::cluster_group cluster = cg::this_cluster();
    words[0] = 1;
    cluster.sync();
    out[blockIdx.x] = cluster.map_shared_rank(words, cluster.block_rank() ^ 1)[4 + threadIdx.x];
    cluster.sync();
}

// A word of the other block that was never written.
extern "C" __global__ void __cluster_dims__(2, 1, 1) unwritten(int *out)
{
    __shared__ int words[4];
    cg::cluster_group cluster = cg::this_cluster();
    words[0] = 1;
    cluster.sync();
    out[blockIdx.x] = cluster.map_shared_rank(words, cluster.block_rank() ^ 1)[1 + threadIdx.x];
    cluster.sync();
}
