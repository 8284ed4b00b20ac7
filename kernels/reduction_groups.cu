// Reduction with cooperative groups: tiles of a warp, the library's own reduction, and a barrier of the whole grid.

#include "reduction.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

// What the library makes of it: `redux` for integers, shuffles for floats.
template <typename T>
struct WarpLibrary {
    __device__ static T sum(T value)
    {
        return cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), value, cg::plus<T>());
    }
};

template <typename T>
using Library = ByWarps<T, WarpLibrary<T>>;

// Tiles of Size lanes, each adding by shuffles within itself; the tiles' sums by a tree. For multiples of 32.
template <typename T, unsigned Size>
struct Tiles {
    __device__ static T sum(T value)
    {
        __shared__ T of_tile[1024 / Size];
        const auto block = cg::this_thread_block();
        const auto tile = cg::tiled_partition<Size>(block);
        const unsigned tiles = blockDim.x / Size;
        for (unsigned offset = Size / 2; offset > 0; offset /= 2) {
            value = plus(value, tile.shfl_down(value, offset));
        }
        if (tile.thread_rank() == 0) {
            of_tile[threadIdx.x / Size] = value;
        }
        block.sync();
        for (unsigned count = tiles; count > 1; count = (count + 1) / 2) {
            const unsigned half = (count + 1) / 2;
            if (threadIdx.x < count / 2) {
                of_tile[threadIdx.x] = plus(of_tile[threadIdx.x], of_tile[threadIdx.x + half]);
            }
            block.sync();
        }
        return of_tile[0];
    }
};

template <typename T>
using Tiles32 = Tiles<T, 32>;
template <typename T>
using Tiles16 = Tiles<T, 16>;
template <typename T>
using Tiles8 = Tiles<T, 8>;

// All blocks wait for each other: a cooperative launch.
template <typename T>
__global__ void grid_sync(const T *input, T *sums, T *result, size_t n)
{
    const T mine = Shuffle<T>::sum(sum_of_thread(input, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = mine;
    }
    cg::this_grid().sync();
    if (blockIdx.x == 0) {
        T total = T();
        for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
            total = plus(total, sums[i]);
        }
        total = Shuffle<T>::sum(total);
        if (threadIdx.x == 0) {
            *result = total;
        }
    }
}
