// Cooperative groups: collectives of tiles, of partitions by label and by predicate, of what happens to be active, and
// of the whole grid.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// sums[i] and scans[i]: the sum and the exclusive prefix of the values of the thread's tile of 16.
extern "C" __global__ void tile_scan(const int *in, int *sums, int *scans)
{
    const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    sums[at] = cg::reduce(tile, in[at], cg::plus<int>());
    scans[at] = cg::exclusive_scan(tile, in[at], cg::plus<int>());
}

// most[i], least[i]: extremes of the thread's warp; running[i]: the largest so far.
extern "C" __global__ void warp_extremes(const int *in, int *most, int *least, int *running)
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    most[at] = cg::reduce(warp, in[at], cg::greater<int>());
    least[at] = cg::reduce(warp, in[at], cg::less<int>());
    running[at] = cg::inclusive_scan(warp, in[at], cg::greater<int>());
}

// Threads of a warp with the same label: how many, the sum of their values, and the thread's rank among them.
extern "C" __global__ void labelled(const int *labels, const int *in, int *sizes, int *sums, int *ranks)
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const auto group = cg::labeled_partition(warp, labels[at]);
    sizes[at] = group.size();
    sums[at] = cg::reduce(group, in[at], cg::plus<int>());
    ranks[at] = group.thread_rank();
}

// Threads of a warp whose value is odd, and the others: the sum within the thread's side, and its first value.
extern "C" __global__ void binary(const int *in, int *sums, int *firsts)
{
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    const auto side = cg::binary_partition(warp, in[at] % 2 != 0);
    sums[at] = cg::reduce(side, in[at], cg::plus<int>());
    firsts[at] = side.shfl(in[at], 0);
}

// Threads whose value is a multiple of three take tickets together: one atomic a group of active threads.
extern "C" __global__ void coalesced(const int *in, int *counter, int *tickets)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[at] % 3 == 0) {
        const auto active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0) {
            first = atomicAdd(counter, (int)active.size());
        }
        tickets[at] = active.shfl(first, 0) + active.thread_rank();
    }
}

// Ten steps of a ring: each cell becomes the sum of its neighbours of the step before, modulo 1000; the grid meets
// after each. Leaves the result in `a`.
extern "C" __global__ void ring(int *a, int *b, int n)
{
    const auto grid = cg::this_grid();
    for (int step = 0; step < 10; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size()) {
            b[i] = (a[(i + 1) % n] + a[(i + n - 1) % n]) % 1000;
        }
        grid.sync();
        for (int i = grid.thread_rank(); i < n; i += grid.size()) {
            a[i] = b[i];
        }
        grid.sync();
    }
}
