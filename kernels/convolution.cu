// The convolution of an image with a filter of 15 by 15, which is not mirrored; the image is 0 outside. Every parameter is of
// the template, so that a configuration is one kernel.

constexpr int TAPS   = 15;
constexpr int RADIUS = TAPS / 2;

__constant__ float taps[TAPS * TAPS];

// An element of the image, through the read-only path or as any other.
template <int READ_ONLY>
__device__ float element(const float* place)
{
    if constexpr (READ_ONLY != 0) {
        return __ldg(place);
    } else {
        return *place;
    }
}

template <int READ_ONLY>
__device__ float element_or_zero(const float* image, int width, int height, int x, int y)
{
    return x >= 0 && x < width && y >= 0 && y < height ? element<READ_ONLY>(image + (size_t)y * width + x) : 0.0f;
}

// The rows that a warp reads at once begin in different banks: the stride is the width of the block, modulo the 32 banks.
__host__ __device__ constexpr int padded(int width, int block)
{
    while (width % 32 != block % 32) {
        width += 1;
    }
    return width;
}

// A block of BX by BY threads computes TX by TY elements for each thread, which are BX and BY elements apart.
template <int BX, int BY, int TX, int TY, int READ_ONLY, int PADDING, int SHARED>
__global__ void convolve(float* out, const float* image, int width, int height)
{
    const int x = blockIdx.x * BX * TX + threadIdx.x;
    const int y = blockIdx.y * BY * TY + threadIdx.y;
    float sums[TY][TX] = {};

    if constexpr (SHARED != 0) {
        constexpr int COLUMNS = BX * TX + 2 * RADIUS;
        constexpr int ROWS    = BY * TY + 2 * RADIUS;
        constexpr int STRIDE  = PADDING != 0 ? padded(COLUMNS, BX) : COLUMNS;
        __shared__ float tile[ROWS][STRIDE];
        const int left = blockIdx.x * BX * TX - RADIUS;
        const int top  = blockIdx.y * BY * TY - RADIUS;
        for (int row = threadIdx.y; row < ROWS; row += BY) {
            for (int column = threadIdx.x; column < COLUMNS; column += BX) {
                tile[row][column] = element_or_zero<READ_ONLY>(image, width, height, left + column, top + row);
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TAPS; i++) {
#pragma unroll
            for (int j = 0; j < TAPS; j++) {
#pragma unroll
                for (int ty = 0; ty < TY; ty++) {
#pragma unroll
                    for (int tx = 0; tx < TX; tx++) {
                        sums[ty][tx] += tile[threadIdx.y + ty * BY + i][threadIdx.x + tx * BX + j] * taps[i * TAPS + j];
                    }
                }
            }
        }
    } else if (blockIdx.x * BX * TX >= RADIUS && blockIdx.y * BY * TY >= RADIUS &&
               (blockIdx.x + 1) * BX * TX + RADIUS <= width && (blockIdx.y + 1) * BY * TY + RADIUS <= height) {
        // All that the block reads is in the image.
        const float* first = image + (ptrdiff_t)(y - RADIUS) * width + (x - RADIUS);
#pragma unroll
        for (int i = 0; i < TAPS; i++) {
#pragma unroll
            for (int j = 0; j < TAPS; j++) {
#pragma unroll
                for (int ty = 0; ty < TY; ty++) {
#pragma unroll
                    for (int tx = 0; tx < TX; tx++) {
                        const float value = element<READ_ONLY>(first + (ptrdiff_t)(ty * BY + i) * width + tx * BX + j);
                        sums[ty][tx] += value * taps[i * TAPS + j];
                    }
                }
            }
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < TAPS; i++) {
#pragma unroll 1
            for (int j = 0; j < TAPS; j++) {
#pragma unroll
                for (int ty = 0; ty < TY; ty++) {
#pragma unroll
                    for (int tx = 0; tx < TX; tx++) {
                        const int column = x + tx * BX + j - RADIUS;
                        const int row    = y + ty * BY + i - RADIUS;
                        sums[ty][tx] +=
                            element_or_zero<READ_ONLY>(image, width, height, column, row) * taps[i * TAPS + j];
                    }
                }
            }
        }
    }

#pragma unroll
    for (int ty = 0; ty < TY; ty++) {
#pragma unroll
        for (int tx = 0; tx < TX; tx++) {
            const int column = x + tx * BX;
            const int row    = y + ty * BY;
            if (column < width && row < height) {
                out[(size_t)row * width + column] = sums[ty][tx];
            }
        }
    }
}
