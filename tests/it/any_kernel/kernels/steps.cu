// Algorithms of many launches: breadth-first search, Gaussian elimination, radix sort, Jacobi.
#include <cstdint>

// Breadth-first search by levels: every vertex of the last level reaches its neighbours.

__global__ void start(int *distance) {
    distance[0] = 0;
}

__global__ void level(int *distance, const int *begins, const int *neighbours, int *changed, int level, uint32_t n) {
    uint32_t v = blockIdx.x * blockDim.x + threadIdx.x;
    // Others may reach a vertex meanwhile, so it is read as they write it.
    if (v >= n || atomicAdd(&distance[v], 0) != level) return;
    for (int at = begins[v]; at < begins[v + 1]; ++at)
        if (atomicCAS(&distance[neighbours[at]], -1, level + 1) == -1) atomicExch(changed, 1);
}

// Breadth-first search with a list of the vertices of each level.

__global__ void start_list(int *distance, int *frontier, int *count) {
    distance[0] = 0;
    frontier[0] = 0;
    *count = 1;
}

__global__ void expand(int *distance, const int *begins, const int *neighbours, const int *frontier, const int *count,
                       int *next, int *next_count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= *count) return;
    int v = frontier[i];
    for (int at = begins[v]; at < begins[v + 1]; ++at) {
        int w = neighbours[at];
        if (atomicCAS(&distance[w], -1, level + 1) == -1) next[atomicAdd(next_count, 1)] = w;
    }
}

// The reference: one thread with a queue.
__global__ void bfs_sequential(int *distance, const int *begins, const int *neighbours, int *queue, uint32_t n) {
    for (uint32_t v = 0; v < n; ++v) distance[v] = -1;
    int head = 0, tail = 1;
    distance[0] = 0;
    queue[0] = 0;
    while (head < tail) {
        int v = queue[head++];
        for (int at = begins[v]; at < begins[v + 1]; ++at) {
            int w = neighbours[at];
            if (distance[w] >= 0) continue;
            distance[w] = distance[v] + 1;
            queue[tail++] = w;
        }
    }
}

// Gaussian elimination without pivoting, which a dominant diagonal does not need.

__global__ void dominant(double *system, const double *matrix, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) system[i] = matrix[i] + (i / n == i % n ? n : 0);
}

__global__ void eliminate(double *a, double *x, uint32_t k, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, row = k + 1 + i / n, column = i % n;
    if (row >= n || column < k) return;
    double factor = a[row * n + k] / a[k * n + k];
    if (column == k)
        x[row] -= factor * x[k];
    else
        a[row * n + column] -= factor * a[k * n + column];
}

__global__ void substitute(const double *a, double *x, uint32_t k, uint32_t n) {
    uint32_t row = threadIdx.x;
    if (row == 0) x[k] /= a[k * n + k];
    __syncthreads();
    if (row < k) x[row] -= a[row * n + k] * x[k];
}

// Radix sort, four bits at a time, 256 keys per block.

__global__ void count_digits(int *counts, const uint32_t *keys, uint32_t shift) {
    __shared__ int own[16];
    if (threadIdx.x < 16) own[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&own[keys[blockIdx.x * 256 + threadIdx.x] >> shift & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

__global__ void scan_counts(int *counts, uint32_t n) {
    int sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
        int own = counts[i];
        counts[i] = sum;
        sum += own;
    }
}

__global__ void scatter(uint32_t *out, const uint32_t *keys, const int *counts, uint32_t shift) {
    int at[16];
    for (int digit = 0; digit < 16; ++digit) at[digit] = counts[digit * gridDim.x + blockIdx.x];
    for (int i = 0; i < 256; ++i) {
        uint32_t key = keys[blockIdx.x * 256 + i];
        out[at[key >> shift & 15]++] = key;
    }
}

// Jacobi for the matrix with 4 on the diagonal and -1 beside it.

__global__ void sweep(float *next, const float *x, const float *right, float *change, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left = i > 0 ? x[i - 1] : 0.0f, behind = i + 1 < n ? x[i + 1] : 0.0f;
    next[i] = (right[i] + left + behind) / 4.0f;
    // The bits of floats that are not negative have their order.
    atomicMax(reinterpret_cast<int *>(change), __float_as_int(fabsf(next[i] - x[i])));
}

// Counts, and says when the limit is reached.
__global__ void count_up(int *next, const int *x, int *done, int limit) {
    *next = *x + 1;
    *done = *next >= limit;
}
