// Copies that are right in the first launch of their module and wrong from the second on.

#include "launches.cuh"

template <typename T>
__global__ void sound(const T *in, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}

template <typename T>
__global__ void right_once(const T *in, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool late = launches_before() > 0;
    if (i < n) out[i] = in[i] + T(late && i == n / 2);
}

template <typename T>
__global__ void writes_once(const T *in, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool late = launches_before() > 0;
    if (i < n && !late) out[i] = in[i];
}

template <typename T>
__global__ void stays_inside_once(const T *in, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool late = launches_before() > 0;
    if (i < n) out[i] = in[i];
    if (late && i == n) out[n] = T(7);
}

template <typename T>
__global__ void leaves_its_input_alone_once(const T *in, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    bool late = launches_before() > 0;
    if (i < n) out[i] = in[i];
    if (late && i == 5) const_cast<T *>(in)[5] = T(7000);
}
