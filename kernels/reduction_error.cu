// Sums of floats that differ in how many additions stand behind each other: each rounds, and the sum of n positive
// numbers by k additions in a row is off by at most k · 2^-24 of it.

#include "reduction.cuh"

// One thread, one element after the other: n - 1 additions in a row.
__global__ void serial(const float *input, float *result, size_t n)
{
    float total = 0;
    for (size_t i = 0; i < n; ++i) {
        total += input[i];
    }
    *result = total;
}

// One atomic an element: as many additions in a row, in whatever order the threads come.
__global__ void atomics(const float *input, float *result, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) {
        // `volatile` keeps the compiler from adding up a warp first.
        atomicAdd(result, const_cast<const volatile float *>(input)[i]);
    }
}

// As `pass`, but what each addition rounds away is kept and added to the next term (Kahan). One block.
__global__ void compensated(const float *input, float *result, size_t n)
{
    float total = 0;
    float lost = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        const float term = __fsub_rn(input[i], lost);
        const float next = __fadd_rn(total, term);
        lost = __fsub_rn(__fsub_rn(next, total), term);
        total = next;
    }
    total = Shuffle<float>::sum(total);
    if (threadIdx.x == 0) {
        *result = total;
    }
}

// As `pass`, in doubles, rounded to a float at the end. One block.
__global__ void in_double(const float *input, float *result, size_t n)
{
    double total = 0;
    for (size_t i = threadIdx.x; i < n; i += blockDim.x) {
        total += input[i];
    }
    total = Shuffle<double>::sum(total);
    if (threadIdx.x == 0) {
        *result = static_cast<float>(total);
    }
}
