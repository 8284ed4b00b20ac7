#include <cuda_fp16.h>
#include <mma.h>
#include <type_traits>

using namespace nvcuda;

// Products of n by n matrices, n a multiple of 16, by one warp for each tile of the result.

__device__ unsigned shared_address(const half *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// A by rows and B by columns, in tiles of 16 by 8.
__global__ void multiply(const half *a, const half *b, float *c, int n)
{
    __shared__ __align__(16) half rows[16 * 16], columns[8 * 16];
    const int first_row = blockIdx.y * 16, first_column = blockIdx.x * 8, lane = threadIdx.x;
    float sum[4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int i = lane; i < 256; i += 32) rows[i] = a[(first_row + i / 16) * n + k + i % 16];
        for (int i = lane; i < 128; i += 32) columns[i] = b[(first_column + i / 16) * n + k + i % 16];
        __syncwarp();
        unsigned x[4], y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(&rows[lane % 16 * 16 + lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_address(&columns[lane % 8 * 16 + lane / 8 % 2 * 8])));
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        __syncwarp();
    }
    for (int i = 0; i < 4; ++i)
        c[(first_row + lane / 4 + i / 2 * 8) * n + first_column + lane % 4 * 2 + i % 2] = sum[i];
}

// By rows: 1. The result has the type of the sums.
template <int A, int B, int C, typename Sum>
__global__ void multiply_fragments(const half *a, const half *b, Sum *c, int n)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, std::conditional_t<A, wmma::row_major, wmma::col_major>> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, std::conditional_t<B, wmma::row_major, wmma::col_major>> y;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sum;
    wmma::fill_fragment(sum, static_cast<Sum>(0.0f));
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(x, A ? a + row * n + k : a + k * n + row, n);
        wmma::load_matrix_sync(y, B ? b + k * n + column : b + column * n + k, n);
        wmma::mma_sync(sum, x, y, sum);
    }
    wmma::store_matrix_sync(C ? c + row * n + column : c + column * n + row, sum, n, C ? wmma::mem_row_major : wmma::mem_col_major);
}
