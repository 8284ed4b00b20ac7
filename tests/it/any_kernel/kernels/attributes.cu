// Kernels whose launches have attributes.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// The first block of each cluster writes the sum of the cluster, the others 0.
__global__ void cluster_sums(int *sums, const int *values) {
    __shared__ int sum;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    cluster.sync();
    atomicAdd(cluster.map_shared_rank(&sum, 0), values[blockIdx.x * blockDim.x + threadIdx.x]);
    cluster.sync();
    if (threadIdx.x == 0) sums[blockIdx.x] = cluster.block_rank() == 0 ? sum : 0;
}

__global__ void block_sums(int *sums, const int *values) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, values[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Waits for the launch before it: 1 where its sum is that of 64 successive numbers.
__global__ void block_sums_after(int *right, const int *sums) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    int first = 64 * blockIdx.x;
    if (threadIdx.x == 0) right[blockIdx.x] = sums[blockIdx.x] == 64 * first + 63 * 32;
}
