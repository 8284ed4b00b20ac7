// Every primitive of a warp, lane by lane: one row of 64 values, those of two warps, for each call. The rows and what
// each lane must hold are worked out in experiments/goldens/goldens.py from the primitives' descriptions.

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned ODD = 0xaaaaaaaau;

// Where the next row goes.
struct Rows {
    int *next;

    __device__ __forceinline__ void write(int value)
    {
        next[threadIdx.x] = value;
        next += blockDim.x;
    }
};

__device__ __forceinline__ int value_of(int thread)
{
    return 3 * thread * thread + 5;
}

__device__ __forceinline__ void votes(Rows &rows, int lane)
{
    const int predicates[4] = {lane % 3 == 1, threadIdx.x >= 32, 1, 0};
#pragma unroll
    for (int p : predicates) {
        rows.write(static_cast<int>(__ballot_sync(FULL, p)));
        rows.write(__all_sync(FULL, p));
        rows.write(__any_sync(FULL, p));
    }
    // Only the odd lanes take part: the others neither vote nor get an answer.
    int ballot = -1, all = -1, any = -1;
    if (lane % 2 == 1) {
        ballot = static_cast<int>(__ballot_sync(ODD, lane % 3 == 1));
        all = __all_sync(ODD, lane % 2 == 1);
        any = __any_sync(ODD, lane % 2 == 0);
    }
    rows.write(ballot);
    rows.write(all);
    rows.write(any);
}

template <int Width>
__device__ __forceinline__ void shuffles(Rows &rows, int value)
{
    const int sources[4] = {0, 1, Width - 1, Width + 1};
#pragma unroll
    for (int source : sources) {
        rows.write(__shfl_sync(FULL, value, source, Width));
    }
    const int deltas[5] = {0, 1, 2, Width - 1, Width};
#pragma unroll
    for (int delta : deltas) {
        rows.write(__shfl_up_sync(FULL, value, delta, Width));
        rows.write(__shfl_down_sync(FULL, value, delta, Width));
    }
    const int masks[5] = {1, 2, Width / 2, Width - 1, 31};
#pragma unroll
    for (int mask : masks) {
        rows.write(__shfl_xor_sync(FULL, value, mask, Width));
    }
}

// Sixteen threads in groups of eight, two up and two down.
__device__ __forceinline__ void half_a_warp(Rows &rows, int lane, int value)
{
    int up = -1, down = -1;
    if (lane < 16) {
        up = __shfl_up_sync(0xffffu, value, 2, 8);
        down = __shfl_down_sync(0xffffu, value, 2, 8);
    }
    rows.write(up);
    rows.write(down);
}

__device__ __forceinline__ void wide(Rows &rows, int value)
{
    const long long both = (static_cast<long long>(value) << 32) | static_cast<unsigned>(~value);
    const long long got = __shfl_xor_sync(FULL, both, 5);
    rows.write(static_cast<int>(got >> 32));
    rows.write(static_cast<int>(got));
}

__device__ __forceinline__ void matches(Rows &rows, int lane)
{
    int same;
    rows.write(static_cast<int>(__match_any_sync(FULL, lane % 5)));
    rows.write(static_cast<int>(__match_any_sync(FULL, threadIdx.x / 7)));
    rows.write(static_cast<int>(__match_all_sync(FULL, threadIdx.x / 32, &same)));
    rows.write(same);
    rows.write(static_cast<int>(__match_all_sync(FULL, lane / 31, &same)));
    rows.write(same);
}

__device__ __forceinline__ void reductions(Rows &rows, int lane, int value)
{
    const unsigned bits = static_cast<unsigned>(value);
    rows.write(__reduce_add_sync(FULL, value));
    rows.write(__reduce_min_sync(FULL, 100 - value));
    rows.write(__reduce_max_sync(FULL, 100 - value));
    rows.write(static_cast<int>(__reduce_and_sync(FULL, bits | 0x100u)));
    rows.write(static_cast<int>(__reduce_or_sync(FULL, bits)));
    rows.write(static_cast<int>(__reduce_xor_sync(FULL, bits)));
    rows.write(lane % 2 == 1 ? __reduce_add_sync(ODD, value) : -1);
}

// What a lane wrote, its mirror reads: __syncwarp orders the two.
__device__ __forceinline__ void exchange(Rows &rows, int lane, int value)
{
    __shared__ int at[64];
    at[threadIdx.x] = value;
    __syncwarp();
    rows.write(at[threadIdx.x - lane + 31 - lane]);
    __syncwarp();
    at[threadIdx.x] = -value;
    int got = -1;
    if (lane % 2 == 1) {
        __syncwarp(ODD);
        got = at[threadIdx.x ^ 2];
    }
    rows.write(got);
}

// One block of 64 threads.
__global__ void warp_primitives(int *out)
{
    Rows rows{out};
    const int lane = threadIdx.x % 32;
    const int value = value_of(threadIdx.x);
    votes(rows, lane);
    shuffles<2>(rows, value);
    shuffles<4>(rows, value);
    shuffles<8>(rows, value);
    shuffles<16>(rows, value);
    shuffles<32>(rows, value);
    half_a_warp(rows, lane, value);
    wide(rows, value);
    matches(rows, lane);
    reductions(rows, lane, value);
    exchange(rows, lane, value);
}
