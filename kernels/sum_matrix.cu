// Sum of two matrices, one element a thread: the block's shape decides which addresses a warp asks for together.

__global__ void sum_matrix(const float *a, const float *b, float *c, unsigned nx, unsigned ny)
{
    const unsigned ix = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix < nx && iy < ny) {
        const size_t at = static_cast<size_t>(iy) * nx + ix;
        c[at] = a[at] + b[at];
    }
}
