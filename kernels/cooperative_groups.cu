// Every group of cooperative groups, thread by thread: one row of 256 values, those of 2 × 2 blocks of 16 × 4 threads,
// for each call. The rows and what each thread must hold are worked out in experiments/goldens/goldens.py.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// Where the next row goes.
struct Rows {
    int *next;
    unsigned thread;

    __device__ __forceinline__ void write(long long value)
    {
        next[thread] = static_cast<int>(value);
        next += 256;
    }
};

__device__ __forceinline__ int value_of(int thread)
{
    return 3 * thread * thread + 5;
}

__device__ __forceinline__ void of_block(Rows &rows, const cg::thread_block &block, int value)
{
    __shared__ int at[64];
    rows.write(block.group_index().x);
    rows.write(block.group_index().y);
    rows.write(block.thread_index().x);
    rows.write(block.thread_index().y);
    rows.write(block.thread_rank());
    rows.write(block.size());
    rows.write(block.group_index().z + block.thread_index().z);
    rows.write(block.group_dim().x * 100 + block.group_dim().y * 10 + block.group_dim().z);
    at[block.thread_rank()] = value;
    block.sync();
    rows.write(at[63 - block.thread_rank()]);
}

template <unsigned Size>
__device__ __forceinline__ void of_tile(Rows &rows, const cg::thread_block &block, int value)
{
    const auto tile = cg::tiled_partition<Size>(block);
    const int rank = tile.thread_rank();
    rows.write(rank);
    rows.write(tile.size());
    rows.write(tile.meta_group_rank());
    rows.write(tile.meta_group_size());
    rows.write(tile.ballot(rank % 3 == 1));
    rows.write(tile.all(value % 2 == 1));
    rows.write(tile.any(value % 7 == 0));
    rows.write(tile.shfl(value, Size - 1));
    rows.write(tile.shfl_up(value, 1));
    rows.write(tile.shfl_down(value, 1));
    rows.write(tile.shfl_xor(value, Size - 1));
    rows.write(tile.shfl(value, Size / 2));
    rows.write(tile.shfl(value, (3 * rank + 1) % Size));
    rows.write(tile.shfl_up(value, 2));
    rows.write(tile.shfl_down(value, 2));
    rows.write(tile.shfl_xor(value, Size / 2));
    rows.write(tile.all(rank < static_cast<int>(Size) - 1));
    rows.write(tile.any(rank == static_cast<int>(Size) - 1));
    rows.write(tile.match_any(rank / 3));
    rows.write(cg::reduce(tile, value, cg::plus<int>()));
    rows.write(cg::reduce(tile, value, cg::greater<int>()));
    // Each thread's value is read by its mirror in the tile.
    __shared__ int at[64];
    at[block.thread_rank()] = value;
    tile.sync();
    rows.write(at[block.thread_rank() - rank + Size - 1 - rank]);
    block.sync();
}

// Each thread's value is read by its mirror in the group.
__device__ __forceinline__ void mirror(Rows &rows, const cg::thread_group &group, int *at, int value)
{
    const int rank = group.thread_rank();
    int *const first = at + (rows.thread % 64 - rank);
    first[rank] = value;
    group.sync();
    rows.write(first[group.size() - 1 - rank]);
}

// Groups whose kind is known at run time only, and a tile of a tile.
__device__ __forceinline__ void of_partitions(Rows &rows, const cg::thread_block &block, int value)
{
    __shared__ int at[3][64];
    const cg::thread_group warp = cg::tiled_partition(block, 32);
    const cg::thread_group four = cg::tiled_partition(warp, 4);
    rows.write(warp.size());
    rows.write(warp.thread_rank());
    rows.write(four.size());
    rows.write(four.thread_rank());
    mirror(rows, block, at[0], value);
    mirror(rows, warp, at[1], value);
    mirror(rows, four, at[2], value);
    const auto outer = cg::tiled_partition<32>(block);
    const auto inner = cg::tiled_partition<4>(outer);
    rows.write(inner.thread_rank());
    rows.write(inner.meta_group_rank());
    rows.write(inner.meta_group_size());
}

// Those that happen to be here together, and warps that part by a predicate or by a label.
__device__ __forceinline__ void of_coalesced(Rows &rows, const cg::thread_block &block, int value)
{
    const auto warp = cg::tiled_partition<32>(block);
    int size = -1, rank = -1, first = -1, sum = -1;
    int ballot = -1, all = -1, any = -1, up = -1, down = -1, third = -1, match = -1, mirror = -1;
    __shared__ int at[64];
    if (warp.thread_rank() % 3 == 1) {
        const auto here = cg::coalesced_threads();
        size = here.size();
        rank = here.thread_rank();
        first = here.shfl(value, 0);
        sum = cg::reduce(here, value, cg::plus<int>());
        ballot = here.ballot(rank % 2 == 1);
        all = here.all(rank < size);
        any = here.any(rank == size);
        up = here.shfl_up(value, 1);
        down = here.shfl_down(value, 2);
        third = here.shfl(value, (rank + 3) % size);
        match = here.match_any(rank / 4);
        at[block.thread_rank()] = value;
        here.sync();
        // Its rank is a third of its lane.
        mirror = at[block.thread_rank() - 3 * rank + 3 * (size - 1 - rank)];
    }
    rows.write(size);
    rows.write(rank);
    rows.write(first);
    rows.write(sum);
    rows.write(ballot);
    rows.write(all);
    rows.write(any);
    rows.write(up);
    rows.write(down);
    rows.write(third);
    rows.write(match);
    rows.write(mirror);
    const auto halves = cg::binary_partition(warp, warp.thread_rank() < 11);
    rows.write(halves.size());
    rows.write(halves.thread_rank());
    rows.write(halves.shfl(value, 10));
    const auto labels = cg::labeled_partition(warp, warp.thread_rank() % 5);
    rows.write(labels.size());
    rows.write(labels.thread_rank());
    rows.write(labels.shfl(value, 1));
}

// Each thread's value is read by its mirror in another block, so the whole grid must wait.
__device__ __forceinline__ void of_grid(Rows &rows, int *exchange, int value)
{
    const auto grid = cg::this_grid();
    rows.write(grid.is_valid());
    rows.write(grid.thread_rank());
    rows.write(grid.size());
    rows.write(grid.block_rank());
    rows.write(grid.num_blocks());
    exchange[grid.thread_rank()] = value;
    grid.sync();
    rows.write(exchange[255 - grid.thread_rank()]);
}

// 2 × 2 blocks of 16 × 4 threads, launched cooperatively.
__global__ void cooperative(int *out, int *exchange)
{
    const auto block = cg::this_thread_block();
    Rows rows{out, static_cast<unsigned>(cg::this_grid().thread_rank())};
    const int value = value_of(rows.thread);
    of_block(rows, block, value);
    of_tile<1>(rows, block, value);
    of_tile<2>(rows, block, value);
    of_tile<4>(rows, block, value);
    of_tile<8>(rows, block, value);
    of_tile<16>(rows, block, value);
    of_tile<32>(rows, block, value);
    of_partitions(rows, block, value);
    of_coalesced(rows, block, value);
    of_grid(rows, exchange, value);
}

// Launched like any other kernel: its grid cannot wait for itself, and does not say so.
__global__ void not_cooperative(int *is_valid)
{
    is_valid[threadIdx.x] = cg::this_grid().is_valid();
}
