// Kernels that leave elements of their output as they were, where what is expected is the poison that the output holds.

template <typename T>
__global__ void nothing(T *out)
{
}

template <typename T>
__global__ void all_but_one(T *out, T value)
{
    if (threadIdx.x != 7) out[threadIdx.x] = value;
}

template <typename T>
__global__ void half(T *out, T value)
{
    if (threadIdx.x < 16) out[threadIdx.x] = value;
}

// One byte of each element, and the last element as a whole.
__global__ void a_byte_of_each(unsigned *out, unsigned value)
{
    ((unsigned char *)out)[4 * threadIdx.x] = value & 0xff;
    if (threadIdx.x == 31) out[31] = value;
}
