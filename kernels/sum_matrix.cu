// Sums of two matrices or volumes, one element per thread: the block's shape decides which addresses one warp loads.

__global__ void sum_matrix(const float *a, const float *b, float *c, unsigned nx, unsigned ny)
{
    const unsigned ix = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned iy = blockIdx.y * blockDim.y + threadIdx.y;
    if (ix < nx && iy < ny) {
        const size_t at = static_cast<size_t>(iy) * nx + ix;
        c[at] = a[at] + b[at];
    }
}

// The same for two volumes, with blocks of three dimensions.
__global__ void sum_volume(const float *a, const float *b, float *c, unsigned nx, unsigned ny, unsigned nz)
{
    const unsigned ix = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned iy = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned iz = blockIdx.z * blockDim.z + threadIdx.z;
    if (ix < nx && iy < ny && iz < nz) {
        const size_t at = (static_cast<size_t>(iz) * ny + iy) * nx + ix;
        c[at] = a[at] + b[at];
    }
}
