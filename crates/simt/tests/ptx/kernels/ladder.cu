// Reductions in place in global memory, as counted in the transaction tables of the Kepler era.
// ladder.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo.

extern "C" __global__ void neighboured(int *data, int *sums)
{
    const unsigned tid = threadIdx.x;
    int *mine = data + blockIdx.x * blockDim.x;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (tid % (2 * stride) == 0) {
            mine[tid] += mine[tid + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        sums[blockIdx.x] = mine[0];
    }
}

extern "C" __global__ void neighboured_dense(int *data, int *sums)
{
    const unsigned tid = threadIdx.x;
    int *mine = data + blockIdx.x * blockDim.x;
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned at = 2 * stride * tid;
        if (at < blockDim.x) {
            mine[at] += mine[at + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        sums[blockIdx.x] = mine[0];
    }
}

// Like the kernel above until one warp's pairs remain, `blockDim.x / 64` elements apart; the rest is done by one warp.
extern "C" __global__ void neighboured_unrolled_warp(int *data, int *sums)
{
    const unsigned tid = threadIdx.x;
    int *mine = data + blockIdx.x * blockDim.x;
    for (unsigned stride = 1; stride < blockDim.x / 64; stride *= 2) {
        const unsigned at = 2 * stride * tid;
        if (at < blockDim.x) {
            mine[at] += mine[at + stride];
        }
        __syncthreads();
    }
    if (tid < 32) {
        const unsigned apart = blockDim.x / 64;
        volatile int *v = mine;
        v[apart * tid] += v[apart * (tid + 32)];
        v[apart * tid] += v[apart * (tid + 16)];
        v[apart * tid] += v[apart * (tid + 8)];
        v[apart * tid] += v[apart * (tid + 4)];
        v[apart * tid] += v[apart * (tid + 2)];
        v[apart * tid] += v[apart * (tid + 1)];
    }
    if (tid == 0) {
        sums[blockIdx.x] = mine[0];
    }
}

template <int BLOCKS>
__device__ void interleaved(int *data, int *sums)
{
    const unsigned tid = threadIdx.x;
    int *mine = data + blockIdx.x * blockDim.x * BLOCKS;
    if (BLOCKS > 1) {
        int sum = mine[tid];
#pragma unroll
        for (int k = 1; k < BLOCKS; ++k) {
            sum += mine[tid + k * blockDim.x];
        }
        mine[tid] = sum;
        __syncthreads();
    }
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) {
            mine[tid] += mine[tid + stride];
        }
        __syncthreads();
    }
    if (tid == 0) {
        sums[blockIdx.x] = mine[0];
    }
}

extern "C" __global__ void interleaved1(int *data, int *sums) { interleaved<1>(data, sums); }
extern "C" __global__ void interleaved2(int *data, int *sums) { interleaved<2>(data, sums); }
extern "C" __global__ void interleaved4(int *data, int *sums) { interleaved<4>(data, sums); }
extern "C" __global__ void interleaved8(int *data, int *sums) { interleaved<8>(data, sums); }

extern "C" __global__ void sum_matrix(const int *a, const int *b, int *c, int nx, int ny)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < nx && y < ny) {
        c[y * nx + x] = a[y * nx + x] + b[y * nx + x];
    }
}

// One number per thread, whatever the shape of the block.
extern "C" __global__ void linear_index(int *out)
{
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    out[block * threads + thread] = block * threads + thread;
}
