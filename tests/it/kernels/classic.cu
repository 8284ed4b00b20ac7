// Kernels that programs are made of: scans, histograms, sorts, sparse products, stencils, queues. Each says what it
// leaves behind; the tests beside this file work that out on the host.

// Exclusive scan of each block's 2 × blockDim values (Blelloch: up-sweep, down-sweep); totals[b] is the block's sum.
extern "C" __global__ void scan_blelloch(const int *in, int *out, int *totals, int n)
{
    extern __shared__ int tile[];
    const int t = threadIdx.x, width = 2 * blockDim.x, first = blockIdx.x * width;
    tile[2 * t] = first + 2 * t < n ? in[first + 2 * t] : 0;
    tile[2 * t + 1] = first + 2 * t + 1 < n ? in[first + 2 * t + 1] : 0;
    int step = 1;
    for (int pairs = blockDim.x; pairs > 0; pairs >>= 1) {
        __syncthreads();
        if (t < pairs) {
            tile[step * (2 * t + 2) - 1] += tile[step * (2 * t + 1) - 1];
        }
        step *= 2;
    }
    __syncthreads();
    if (t == 0) {
        totals[blockIdx.x] = tile[width - 1];
        tile[width - 1] = 0;
    }
    for (int pairs = 1; pairs <= blockDim.x; pairs *= 2) {
        step >>= 1;
        __syncthreads();
        if (t < pairs) {
            const int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1;
            const int moved = tile[left];
            tile[left] = tile[right];
            tile[right] += moved;
        }
    }
    __syncthreads();
    if (first + 2 * t < n) {
        out[first + 2 * t] = tile[2 * t];
    }
    if (first + 2 * t + 1 < n) {
        out[first + 2 * t + 1] = tile[2 * t + 1];
    }
}

// Adds the scanned total of each block to what that block scanned.
extern "C" __global__ void scan_add(int *out, const int *totals, int n)
{
    const int first = blockIdx.x * 2 * blockDim.x + threadIdx.x;
    for (int i = first; i < first + 2 * (int)blockDim.x && i < n; i += blockDim.x) {
        if (i < (blockIdx.x + 1) * 2 * blockDim.x) {
            out[i] += totals[blockIdx.x];
        }
    }
}

// Inclusive scan in one pass: a block draws its number, publishes its sum, and looks back over what those before it
// have published (0 nothing, 1 the block's sum, 2 the sum up to and with the block).
extern "C" __global__ void scan_look_back(const int *in, int *out, unsigned long long *state, unsigned *ticket, int n)
{
    __shared__ int warps[32];
    __shared__ unsigned number;
    __shared__ int before;
    if (threadIdx.x == 0) {
        number = atomicAdd(ticket, 1);
    }
    __syncthreads();
    const int at = number * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = at < n ? in[at] : 0;
    for (int by = 1; by < 32; by *= 2) {
        const int other = __shfl_up_sync(~0u, sum, by);
        sum += lane >= by ? other : 0;
    }
    if (lane == 31) {
        warps[warp] = sum;
    }
    __syncthreads();
    if (warp == 0) {
        int part = lane < blockDim.x / 32 ? warps[lane] : 0;
        for (int by = 1; by < 32; by *= 2) {
            const int other = __shfl_up_sync(~0u, part, by);
            part += lane >= by ? other : 0;
        }
        warps[lane] = part;
    }
    __syncthreads();
    sum += warp > 0 ? warps[warp - 1] : 0;
    if (threadIdx.x == blockDim.x - 1) {
        volatile unsigned long long *published = state;
        const unsigned own = sum;
        published[number] = (number == 0 ? 2ull : 1ull) << 32 | own;
        __threadfence();
        unsigned total = 0;
        for (int back = (int)number - 1; back >= 0;) {
            const unsigned long long seen = published[back];
            if (seen >> 32 == 0) {
                continue;
            }
            total += (unsigned)seen;
            if (seen >> 32 == 2) {
                break;
            }
            back--;
        }
        if (number > 0) {
            published[number] = 2ull << 32 | (total + own);
        }
        before = (int)total;
    }
    __syncthreads();
    if (at < n) {
        out[at] = sum + before;
    }
}

// bins[v] = how often v (0 … 255) stands in the data: a private histogram for each warp in shared memory, then one
// atomic a bin and block.
extern "C" __global__ void histogram(const unsigned char *data, unsigned *bins, int n)
{
    __shared__ unsigned part[4][256];
    for (int i = threadIdx.x; i < 4 * 256; i += blockDim.x) {
        part[i / 256][i % 256] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&part[threadIdx.x / 32][data[i]], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
        const unsigned sum = part[0][bin] + part[1][bin] + part[2][bin] + part[3][bin];
        if (sum != 0) {
            atomicAdd(&bins[bin], sum);
        }
    }
}

// out = in transposed, through a tile of 32 × 33 words; blocks of 32 × 8 threads.
extern "C" __global__ void transpose(const float *in, float *out, int width, int height)
{
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        if (x < width && y + k < height) {
            tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
        }
    }
    __syncthreads();
    const int tx = blockIdx.y * 32 + threadIdx.x, ty = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        if (tx < height && ty + k < width) {
            out[(ty + k) * height + tx] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

// Sorts each block's 2 × blockDim keys upward, in shared memory.
extern "C" __global__ void bitonic_sort(unsigned *keys)
{
    extern __shared__ unsigned sorted[];
    const int width = 2 * blockDim.x;
    unsigned *own = keys + blockIdx.x * width;
    sorted[threadIdx.x] = own[threadIdx.x];
    sorted[threadIdx.x + blockDim.x] = own[threadIdx.x + blockDim.x];
    for (int size = 2; size <= width; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const int low = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), high = low + stride;
            const bool upward = (low & size) == 0;
            const unsigned a = sorted[low], b = sorted[high];
            if ((a > b) == upward) {
                sorted[low] = b;
                sorted[high] = a;
            }
        }
    }
    __syncthreads();
    own[threadIdx.x] = sorted[threadIdx.x];
    own[threadIdx.x + blockDim.x] = sorted[threadIdx.x + blockDim.x];
}

// y = A x of a matrix in compressed rows, a thread a row.
extern "C" __global__ void spmv_scalar(const int *rows, const int *columns, const double *values, const double *x, double *y, int n)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        double sum = 0;
        for (int k = rows[row]; k < rows[row + 1]; k++) {
            sum += values[k] * x[columns[k]];
        }
        y[row] = sum;
    }
}

// The same, a warp a row.
extern "C" __global__ void spmv_vector(const int *rows, const int *columns, const double *values, const double *x, double *y, int n)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= n) {
        return;
    }
    double sum = 0;
    for (int k = rows[row] + lane; k < rows[row + 1]; k += 32) {
        sum += values[k] * x[columns[k]];
    }
    for (int by = 16; by > 0; by /= 2) {
        sum += __shfl_down_sync(~0u, sum, by);
    }
    if (lane == 0) {
        y[row] = sum;
    }
}

// The mean of a point and its four neighbours, with a halo in shared memory; blocks of 16 × 16, edges copied.
extern "C" __global__ void stencil_2d(const float *in, float *out, int width, int height)
{
    __shared__ float tile[18][18];
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 18 * 18; i += 256) {
        const int from_x = min(max((int)blockIdx.x * 16 + i % 18 - 1, 0), width - 1);
        const int from_y = min(max((int)blockIdx.y * 16 + i / 18 - 1, 0), height - 1);
        tile[i / 18][i % 18] = in[from_y * width + from_x];
    }
    __syncthreads();
    if (x < width && y < height) {
        const int i = threadIdx.x + 1, j = threadIdx.y + 1;
        out[y * width + x] = 0.2f * (tile[j][i] + tile[j][i - 1] + tile[j][i + 1] + tile[j - 1][i] + tile[j + 1][i]);
    }
}

// The sum of a cell and its six neighbours in a cube whose outside is zero; blocks of 8 × 8 × 8.
extern "C" __global__ void stencil_3d(const int *in, int *out, int n)
{
    __shared__ int cube[10][10][10];
    const int flat = (threadIdx.z * 8 + threadIdx.y) * 8 + threadIdx.x;
    for (int i = flat; i < 1000; i += 512) {
        const int x = (int)blockIdx.x * 8 + i % 10 - 1, y = (int)blockIdx.y * 8 + i / 10 % 10 - 1, z = (int)blockIdx.z * 8 + i / 100 - 1;
        const bool inside = x >= 0 && y >= 0 && z >= 0 && x < n && y < n && z < n;
        cube[i / 100][i / 10 % 10][i % 10] = inside ? in[(z * n + y) * n + x] : 0;
    }
    __syncthreads();
    const int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z * 8 + threadIdx.z;
    if (x < n && y < n && z < n) {
        const int i = threadIdx.x + 1, j = threadIdx.y + 1, k = threadIdx.z + 1;
        out[(z * n + y) * n + x] = cube[k][j][i] + cube[k][j][i - 1] + cube[k][j][i + 1] + cube[k][j - 1][i] +
                                   cube[k][j + 1][i] + cube[k - 1][j][i] + cube[k + 1][j][i];
    }
}

// After how many steps (at most `limit`) a point of the plane leaves the disc of radius two.
extern "C" __global__ void mandelbrot(int *steps, int width, int height, int limit)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width * height) {
        return;
    }
    // Rounded after every operation, so that nothing is fused.
    const double a = __dadd_rn(__ddiv_rn(3.0 * (i % width), width), -2.0), b = __dadd_rn(__ddiv_rn(3.0 * (i / width), height), -1.5);
    double x = 0, y = 0;
    int k = 0;
    while (k < limit && __dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y)) <= 4.0) {
        const double next = __dadd_rn(__dsub_rn(__dmul_rn(x, x), __dmul_rn(y, y)), a);
        y = __dadd_rn(__dmul_rn(2 * x, y), b);
        x = next;
        k++;
    }
    steps[i] = k;
}

// A bounded queue of many producers and consumers: a cell carries the turn at which it may be filled or emptied.
struct Cell {
    unsigned turn;
    int value;
};

// Even warps put `each` numbers a thread, odd warps take as many; `taken[v]` counts how often v came out.
extern "C" __global__ void queue(Cell *cells, unsigned mask, unsigned *head, unsigned *tail, unsigned *taken, int each)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, pair = thread / 64 * 32 + thread % 32;
    const bool puts = thread / 32 % 2 == 0;
    for (int k = 0; k < each; k++) {
        const unsigned place = atomicAdd(puts ? tail : head, 1u);
        volatile Cell *cell = &cells[place & mask];
        const unsigned turn = place / (mask + 1) * 2 + (puts ? 0 : 1);
        bool done = false;
        while (!done) {
            if (cell->turn == turn) {
                __threadfence();
                if (puts) {
                    cell->value = pair * each + k;
                } else {
                    atomicAdd(&taken[cell->value], 1u);
                }
                __threadfence();
                cell->turn = turn + 1;
                done = true;
            }
        }
    }
}

// The block's sum in a block of 80 threads, two and a half warps: out[b] is the sum of in[80 b …].
extern "C" __global__ void sum_of_eighty(const int *in, int *out)
{
    __shared__ int parts[3];
    int sum = in[blockIdx.x * 80 + threadIdx.x];
    const int width = threadIdx.x < 64 ? 32 : 16;
    const unsigned lanes = threadIdx.x < 64 ? ~0u : 0xffffu;
    for (int by = width / 2; by > 0; by /= 2) {
        sum += __shfl_down_sync(lanes, sum, by, width);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = parts[0] + parts[1] + parts[2];
    }
}
