// The primitives of CUB, of warps and of blocks, and a kernel of its device-wide reduction.

#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

// sums[b]: the sum of the block's 512 values, four a thread.
extern "C" __global__ void block_reduce(const int *in, int *sums)
{
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Reduce = cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING>;
    __shared__ union {
        Load::TempStorage load;
        Reduce::TempStorage reduce;
    } room;
    int values[4];
    Load(room.load).Load(in + blockIdx.x * 512, values);
    __syncthreads();
    const int sum = Reduce(room.reduce).Sum(values);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// most[b]: the largest of the block's 96 values, by shuffles.
extern "C" __global__ void block_max(const float *in, float *most)
{
    using Reduce = cub::BlockReduce<float, 96, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    __shared__ Reduce::TempStorage room;
    const float largest = Reduce(room).Reduce(in[blockIdx.x * 96 + threadIdx.x], [](float a, float b) { return a > b ? a : b; });
    if (threadIdx.x == 0) {
        most[blockIdx.x] = largest;
    }
}

// out: the exclusive prefix sums of each block's 512 values; totals[b] their sum.
extern "C" __global__ void block_scan(const int *in, int *out, int *totals)
{
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 128, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ union {
        Load::TempStorage load;
        Store::TempStorage store;
        Scan::TempStorage scan;
    } room;
    int values[4], total;
    Load(room.load).Load(in + blockIdx.x * 512, values);
    __syncthreads();
    Scan(room.scan).ExclusiveSum(values, values, total);
    __syncthreads();
    Store(room.store).Store(out + blockIdx.x * 512, values);
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = total;
    }
}

// Sorts each block's 256 keys upward, and the values with them.
extern "C" __global__ void block_sort(unsigned *keys, int *values)
{
    using Sort = cub::BlockRadixSort<unsigned, 64, 4, int>;
    __shared__ Sort::TempStorage room;
    unsigned own[4];
    int with[4];
    for (int k = 0; k < 4; k++) {
        own[k] = keys[blockIdx.x * 256 + threadIdx.x * 4 + k];
        with[k] = values[blockIdx.x * 256 + threadIdx.x * 4 + k];
    }
    Sort(room).Sort(own, with);
    for (int k = 0; k < 4; k++) {
        keys[blockIdx.x * 256 + threadIdx.x * 4 + k] = own[k];
        values[blockIdx.x * 256 + threadIdx.x * 4 + k] = with[k];
    }
}

// bins[b][v]: how often v (0 … 63) stands among the block's 512 values, by sorting and by atomics.
extern "C" __global__ void block_histogram(const unsigned char *in, unsigned *sorted, unsigned *counted)
{
    using Sorting = cub::BlockHistogram<unsigned char, 128, 4, 64, cub::BLOCK_HISTO_SORT>;
    using Counting = cub::BlockHistogram<unsigned char, 128, 4, 64, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ union {
        Sorting::TempStorage sorting;
        Counting::TempStorage counting;
    } room;
    __shared__ unsigned bins[64];
    unsigned char values[4];
    for (int k = 0; k < 4; k++) {
        values[k] = in[blockIdx.x * 512 + threadIdx.x * 4 + k];
    }
    Counting(room.counting).Histogram(values, bins);
    __syncthreads();
    if (threadIdx.x < 64) {
        counted[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
    }
    __syncthreads();
    Sorting(room.sorting).Histogram(values, bins);
    __syncthreads();
    if (threadIdx.x < 64) {
        sorted[blockIdx.x * 64 + threadIdx.x] = bins[threadIdx.x];
    }
}

// Values in stripes become values in runs of four: out[4 t + k] = in[t + 128 k].
extern "C" __global__ void block_exchange(const int *in, int *out)
{
    using Exchange = cub::BlockExchange<int, 128, 4>;
    __shared__ Exchange::TempStorage room;
    int values[4];
    for (int k = 0; k < 4; k++) {
        values[k] = in[threadIdx.x * 4 + k];
    }
    Exchange(room).BlockedToStriped(values, values);
    for (int k = 0; k < 4; k++) {
        out[threadIdx.x * 4 + k] = values[k];
    }
}

// prefixes[i], totals[i]: the inclusive prefix and the sum of the thread's logical warp of 8.
extern "C" __global__ void warp_scan(const int *in, int *prefixes, int *totals)
{
    using Scan = cub::WarpScan<int, 8>;
    using Reduce = cub::WarpReduce<int, 8>;
    __shared__ Scan::TempStorage scans[16];
    __shared__ Reduce::TempStorage sums[16];
    const int at = blockIdx.x * 128 + threadIdx.x, warp = threadIdx.x / 8;
    int prefix;
    Scan(scans[warp]).InclusiveSum(in[at], prefix);
    prefixes[at] = prefix;
    const int sum = Reduce(sums[warp]).Sum(in[at]);
    if (threadIdx.x % 8 == 0) {
        totals[at / 8] = sum;
    }
}

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

// Sorts the values of each warp, four a lane.
extern "C" __global__ void warp_sort(int *keys)
{
    using Sort = cub::WarpMergeSort<int, 4, 32>;
    __shared__ Sort::TempStorage room[2];
    // CUB reads one key behind the last before it knows that it does not need it.
    for (int i = threadIdx.x; i < sizeof(room) / sizeof(int); i += 64) {
        reinterpret_cast<int *>(room)[i] = 0;
    }
    __syncthreads();
    int own[4];
    const int at = (blockIdx.x * 64 + threadIdx.x) * 4;
    for (int k = 0; k < 4; k++) {
        own[k] = keys[at + k];
    }
    Sort(room[threadIdx.x / 32]).Sort(own, Less());
    for (int k = 0; k < 4; k++) {
        keys[at + k] = own[k];
    }
}
