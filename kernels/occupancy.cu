// A copy whose threads each hold Live elements at once: all are loaded before the first is stored, since the two arrays
// might overlap for all the compiler knows. So Live sets how many registers a thread needs.

template <unsigned Live>
__global__ void hold(const unsigned *in, unsigned *out, size_t n)
{
    const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x * Live + threadIdx.x;
    const size_t last = first + static_cast<size_t>(Live - 1) * blockDim.x;
    if (last < n) {
        unsigned held[Live];
        const unsigned *from = in + first;
        unsigned *to = out + first;
#pragma unroll
        for (unsigned k = 0; k < Live; ++k) {
            held[k] = *from;
            from += blockDim.x;
        }
#pragma unroll
        for (unsigned k = 0; k < Live; ++k) {
            *to = held[k];
            to += blockDim.x;
        }
    } else {
#pragma unroll 1
        for (size_t i = first; i < n; i += blockDim.x) {
            out[i] = in[i];
        }
    }
}
