// C = A·B in tiles. A is column-major (m × k, element (r, t) at `a[t * m + r]`), B and C are row-major: so a warp may
// read both without a stride. Every kernel is right for any m, n, k, but for the one as it is listed: what lies outside counts as zero.

// One thread an element of C, no tile: every element of A and B is read as often as it is needed.
__global__ void naive(const float *a, const float *b, float *c, unsigned m, unsigned n, unsigned k)
{
    const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0;
        for (unsigned t = 0; t < k; ++t) {
            sum += a[static_cast<size_t>(t) * m + row] * b[static_cast<size_t>(t) * n + column];
        }
        c[static_cast<size_t>(row) * n + column] = sum;
    }
}

// How a warp fetches its tile of A. The first two leave a[t][row] in shared memory.
enum Fetch {
    // Its lanes take neighbouring t: addresses m apart in memory, and one column of the tile in shared memory, whose
    // elements lie Width apart. Where Width is a multiple of 32 they all are in one bank.
    COLUMNS,
    // Its lanes take neighbouring rows: neighbouring addresses on both sides.
    ROWS,
    // As document C prints it, which is wrong: it fetches columns, stores both tiles one way round and reads them the other.
    AS_LISTED,
};

// Tile × Tile elements of C per block, one thread each. Width is the row of A's tile in shared memory. A warp stores 32 / Tile
// columns at once: with Width = Tile + 32 / Tile no two of its lanes meet in a bank.
template <unsigned Tile, unsigned Width, Fetch How>
__global__ void tiled(const float *a, const float *b, float *c, unsigned m, unsigned n, unsigned k)
{
    __shared__ float tile_a[Tile][Width];
    __shared__ float tile_b[Tile][Tile];
    const unsigned x = threadIdx.x;
    const unsigned y = threadIdx.y;
    const unsigned row = blockIdx.y * Tile + y;
    const unsigned column = blockIdx.x * Tile + x;
    float sum = 0;
    for (unsigned t = 0; t < k; t += Tile) {
        if (How == ROWS) {
            const unsigned line = blockIdx.y * Tile + x;
            tile_a[y][x] = line < m && t + y < k ? a[static_cast<size_t>(t + y) * m + line] : 0;
        } else {
            float &to = How == AS_LISTED ? tile_a[y][x] : tile_a[x][y];
            to = row < m && t + x < k ? a[static_cast<size_t>(t + x) * m + row] : 0;
        }
        float &to = How == AS_LISTED ? tile_b[x][y] : tile_b[y][x];
        to = column < n && t + y < k ? b[static_cast<size_t>(t + y) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (unsigned i = 0; i < Tile; ++i) {
            sum += tile_a[i][y] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[static_cast<size_t>(row) * n + column] = sum;
    }
}
