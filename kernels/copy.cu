// Copy of n complex numbers, kept as an array of real and an array of imaginary parts.

// As many threads as elements, no more: n must be a multiple of the block.
__global__ void copy_plain(const double *real_in, const double *imag_in, double *real_out, double *imag_out)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    real_out[i] = real_in[i];
    imag_out[i] = imag_in[i];
}

// What blocks of one size leave over, by a second launch: as many threads as elements from `first` on.
__global__ void copy_rest(size_t first, const double *real_in, const double *imag_in, double *real_out, double *imag_out)
{
    const size_t i = first + static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
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

// Unroll elements, `step` apart, all loaded before the first is stored, so that as many loads are in flight.
template <unsigned Unroll>
__device__ __forceinline__ void copy_together(size_t i, size_t step, const double *__restrict__ real_in,
                                              const double *__restrict__ imag_in, double *__restrict__ real_out,
                                              double *__restrict__ imag_out)
{
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

// Unroll elements per iteration; the remainder, when n is no multiple, is copied one by one.
template <unsigned Unroll>
__global__ void copy_unrolled(size_t n, const double *__restrict__ real_in, const double *__restrict__ imag_in,
                              double *__restrict__ real_out, double *__restrict__ imag_out)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (; i + (Unroll - 1) * step < n; i += Unroll * step) {
        copy_together<Unroll>(i, step, real_in, imag_in, real_out, imag_out);
    }
    for (; i < n; i += step) {
        real_out[i] = real_in[i];
        imag_out[i] = imag_in[i];
    }
}

// As `copy_grid_stride`, with the loop left to the compiler to unroll: it keeps the comparisons, since n is not known.
template <unsigned Unroll>
__global__ void copy_pragma(size_t n, const double *real_in, const double *imag_in, double *real_out, double *imag_out)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
#pragma unroll Unroll
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        real_out[i] = real_in[i];
        imag_out[i] = imag_in[i];
    }
}

// Unroll elements per iteration, no code for a remainder: n must be a multiple of Unroll times the threads.
template <unsigned Unroll>
__global__ void copy_exact(size_t n, const double *__restrict__ real_in, const double *__restrict__ imag_in,
                           double *__restrict__ real_out, double *__restrict__ imag_out)
{
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += Unroll * step) {
        copy_together<Unroll>(i, step, real_in, imag_in, real_out, imag_out);
    }
}

// 16 bytes per load, Loads of them per thread from each array, one block apart; as many blocks as n needs.
template <unsigned Loads>
__global__ void copy_vector(size_t n, const double *__restrict__ real_in, const double *__restrict__ imag_in,
                            double *__restrict__ real_out, double *__restrict__ imag_out)
{
    const double2 *reals = reinterpret_cast<const double2 *>(real_in);
    const double2 *imags = reinterpret_cast<const double2 *>(imag_in);
    const size_t pairs = n / 2;
    const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x * Loads + threadIdx.x;
    double2 real[Loads], imag[Loads];
#pragma unroll
    for (unsigned k = 0; k < Loads; ++k) {
        const size_t i = first + k * blockDim.x;
        if (i < pairs) {
            real[k] = reals[i];
            imag[k] = imags[i];
        }
    }
#pragma unroll
    for (unsigned k = 0; k < Loads; ++k) {
        const size_t i = first + k * blockDim.x;
        if (i < pairs) {
            reinterpret_cast<double2 *>(real_out)[i] = real[k];
            reinterpret_cast<double2 *>(imag_out)[i] = imag[k];
        }
    }
    if (first == 0 && n % 2 == 1) {
        real_out[n - 1] = real_in[n - 1];
        imag_out[n - 1] = imag_in[n - 1];
    }
}
