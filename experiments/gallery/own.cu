// SPDX-License-Identifier: MIT OR Apache-2.0
// Kernels of our own beside those of published packages: the same work written another way.

// A step of Adam, four elements per thread.
extern "C" __global__ void adam_vectors(unsigned n, float4 *param, const float4 *gradient, float4 *mean, float4 *square, float rate)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i * 4 >= n) return;
    float4 p = param[i], g = gradient[i], m = mean[i], v = square[i];
    auto step = [&](float &p, float g, float &m, float &v) {
        m = 0.9f * m + 0.1f * g;
        v = 0.999f * v + 0.001f * g * g;
        p -= rate * m / (sqrtf(v) + 1e-8f);
    };
    step(p.x, g.x, m.x, v.x);
    step(p.y, g.y, m.y, v.y);
    step(p.z, g.z, m.z, v.z);
    step(p.w, g.w, m.w, v.w);
    param[i] = p, mean[i] = m, square[i] = v;
}

// A convolution with stride 1 whose filter has TAPS x TAPS elements, one output per thread; the image is 0 outside.
template <int TAPS>
__global__ void convolution(int from, int rows, int columns, const float *input, const float *filter, float *output)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y, to = blockIdx.z;
    if (column >= columns || row >= rows) return;
    float sum = 0;
    for (int channel = 0; channel < from; channel++) {
        const float *image = input + channel * rows * columns, *weights = filter + (to * from + channel) * TAPS * TAPS;
        for (int y = 0; y < TAPS; y++)
            for (int x = 0; x < TAPS; x++) {
                int from_row = row + y - TAPS / 2, from_column = column + x - TAPS / 2;
                bool inside = from_row >= 0 && from_row < rows && from_column >= 0 && from_column < columns;
                if (inside) sum += weights[y * TAPS + x] * image[from_row * columns + from_column];
            }
    }
    output[(to * rows + row) * columns + column] = sum;
}

// The product of a matrix in q4_0 (a scale in f16 and 16 bytes with two numbers each) and a vector, a warp per row.
extern "C" __global__ void quantized_product(int rows, int columns, const unsigned short *weights, const float *vector, float *output)
{
    int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= rows) return;
    const unsigned short *blocks = weights + row * (columns / 32) * 9;
    float sum = 0;
    // Eight lanes read a block, two bytes each.
    for (int block = lane / 8; block < columns / 32; block += 4) {
        const unsigned short *words = blocks + block * 9;
        float scale;
        asm("cvt.f32.f16 %0, %1;" : "=f"(scale) : "h"(words[0]));
        unsigned bytes = words[1 + lane % 8];
        const float *low = vector + block * 32 + lane % 8 * 2, *high = low + 16;
        float part = (int(bytes & 15) - 8) * low[0] + (int(bytes >> 4 & 15) - 8) * high[0]
            + (int(bytes >> 8 & 15) - 8) * low[1] + (int(bytes >> 12) - 8) * high[1];
        sum += scale * part;
    }
    for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
    if (lane == 0) output[row] = sum;
}

// The sums of the samples of each ray up to each of them, a warp per ray.
extern "C" __global__ void running_sums(int rays, int samples, const float *input, float *output)
{
    int ray = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (ray >= rays) return;
    float before = 0;
    for (int first = 0; first < samples; first += 32) {
        int sample = first + lane;
        float sum = sample < samples ? input[ray * samples + sample] : 0;
        for (int apart = 1; apart < 32; apart *= 2) {
            float other = __shfl_up_sync(~0u, sum, apart);
            if (lane >= apart) sum += other;
        }
        sum += before;
        if (sample < samples) output[ray * samples + sample] = sum;
        before = __shfl_sync(~0u, sum, 31);
    }
}

// Adds each row of the input to the row of the sums that its id names, one element per thread.
extern "C" __global__ void added_rows(int width, const unsigned *ids, const float *input, float *sums)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < width) atomicAdd(&sums[ids[blockIdx.y] * width + column], input[blockIdx.y * width + column]);
}

// The greatest value or the sum of what the threads of a block have. All of them get it.
template <typename T, typename Join>
__device__ T joined(T value, Join join)
{
    __shared__ T parts[32];
    int warps = blockDim.x / 32;
    for (int other = 16; other > 0; other /= 2) value = join(value, __shfl_xor_sync(~0u, value, other));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < warps; warp++) value = join(value, parts[warp]);
    return value;
}

// The softmax of each row, a block per row.
template <typename T>
__device__ void softmax_of_row(int columns, const T *input, T *output)
{
    input += blockIdx.x * columns, output += blockIdx.x * columns;
    T greatest = input[0], sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) greatest = max(greatest, input[i]);
    greatest = joined(greatest, [](T a, T b) { return max(a, b); });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += exp(input[i] - greatest);
    sum = joined(sum, [](T a, T b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += blockDim.x) output[i] = exp(input[i] - greatest) / sum;
}

extern "C" __global__ void softmax_of_rows_f32(int columns, const float *input, float *output)
{
    softmax_of_row(columns, input, output);
}

extern "C" __global__ void softmax_of_rows_f64(int columns, const double *input, double *output)
{
    softmax_of_row(columns, input, output);
}
