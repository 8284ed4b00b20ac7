// Copy of n complex numbers, kept as an array of real and an array of imaginary parts.

// As many threads as elements, no more: n must be a multiple of the block.
__global__ void copy_plain(const double *real_in, const double *imag_in, double *real_out, double *imag_out)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    real_out[i] = real_in[i];
    imag_out[i] = imag_in[i];
}

// At least as many threads as elements; those too many do nothing.
__global__ void copy_guarded(size_t n, const double *real_in, const double *imag_in, double *real_out, double *imag_out)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        real_out[i] = real_in[i];
        imag_out[i] = imag_in[i];
    }
}

// Any number of threads: each goes on by the size of the grid.
__global__ void copy_grid_stride(size_t n, const double *real_in, const double *imag_in, double *real_out,
                                 double *imag_out)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        real_out[i] = real_in[i];
        imag_out[i] = imag_in[i];
    }
}

// Unroll elements a turn, all loaded before the first is stored, so that as many loads are in flight; what is left
// when n is no multiple goes one by one.
template <unsigned Unroll>
__global__ void copy_unrolled(size_t n, const double *__restrict__ real_in, const double *__restrict__ imag_in,
                              double *__restrict__ real_out, double *__restrict__ imag_out)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (Unroll - 1) * step < n; i += Unroll * step) {
        double real[Unroll], imag[Unroll];
#pragma unroll
        for (unsigned k = 0; k < Unroll; ++k) {
            real[k] = real_in[i + k * step];
            imag[k] = imag_in[i + k * step];
        }
#pragma unroll
        for (unsigned k = 0; k < Unroll; ++k) {
            real_out[i + k * step] = real[k];
            imag_out[i + k * step] = imag[k];
        }
    }
    for (; i < n; i += step) {
        real_out[i] = real_in[i];
        imag_out[i] = imag_in[i];
    }
}
