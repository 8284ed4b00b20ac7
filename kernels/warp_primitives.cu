// Every primitive of a warp, lane by lane: one row of 64 values, those of two warps, for each call. The rows and what
// each lane must hold are worked out in experiments/goldens/goldens.py from the primitives' descriptions.

constexpr unsigned FULL = 0xffffffffu;
constexpr unsigned ODD = 0xaaaaaaaau;
constexpr unsigned EVEN = 0x55555555u;

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

// Two halves of a warp vote at the same time, each under a mask of its own; then one lane alone.
__device__ __forceinline__ void votes_apart(Rows &rows, int lane)
{
    int ballot, all, any;
    if (lane % 2 == 0) {
        ballot = static_cast<int>(__ballot_sync(EVEN, lane < 20));
        all = __all_sync(EVEN, lane < 31);
        any = __any_sync(EVEN, lane == 31);
    } else {
        ballot = static_cast<int>(__ballot_sync(ODD, lane < 20));
        all = __all_sync(ODD, lane < 31);
        any = __any_sync(ODD, lane == 31);
    }
    rows.write(ballot);
    rows.write(all);
    rows.write(any);
    ballot = -1;
    all = -1;
    any = -1;
    if (lane == 17) {
        ballot = static_cast<int>(__ballot_sync(1u << 17, 1));
        all = __all_sync(1u << 17, 0);
        any = __any_sync(1u << 17, 5);
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

// Odd lanes among themselves, in every direction; the source that a lane reads takes part.
__device__ __forceinline__ void shuffles_of_odd_lanes(Rows &rows, int lane, int value)
{
    int got[6] = {-1, -1, -1, -1, -1, -1};
    if (lane % 2 == 1) {
        got[0] = __shfl_sync(ODD, value, 5);
        got[1] = __shfl_sync(ODD, value, lane ^ 6);
        got[2] = __shfl_up_sync(ODD, value, 2);
        got[3] = __shfl_down_sync(ODD, value, 2);
        got[4] = __shfl_xor_sync(ODD, value, 2);
        got[5] = __shfl_down_sync(ODD, value, 4, 8);
    }
#pragma unroll
    for (int one : got) {
        rows.write(one);
    }
}

// A source of each lane's own, one before the first lane, and the lane's number in its group.
__device__ __forceinline__ void sources(Rows &rows, int lane, int value)
{
    rows.write(__shfl_sync(FULL, value, (7 * lane + 3) % 32));
    rows.write(__shfl_sync(FULL, value, lane / 2, 16));
    rows.write(__shfl_sync(FULL, value, -1));
    rows.write(__shfl_sync(FULL, value, -1, 8));
    rows.write(__shfl_sync(FULL, lane % 8, 3, 8));
    unsigned number;
    asm("mov.u32 %0, %%laneid;" : "=r"(number));
    rows.write(static_cast<int>(number));
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

// Other types in every direction: the value and what its bits are, two words where it has eight bytes.
template <typename T>
__device__ __forceinline__ void write_bits(Rows &rows, T value)
{
    int words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (int word : words) {
        rows.write(word);
    }
}

template <typename T>
__device__ __forceinline__ void of_type(Rows &rows, T value)
{
    write_bits(rows, __shfl_sync(FULL, value, 9));
    write_bits(rows, __shfl_up_sync(FULL, value, 3));
    write_bits(rows, __shfl_down_sync(FULL, value, 3, 16));
    write_bits(rows, __shfl_xor_sync(FULL, value, 5));
}

__device__ __forceinline__ void types(Rows &rows, int value)
{
    of_type(rows, static_cast<unsigned>(value) | 0x80000000u);
    of_type(rows, (static_cast<long long>(value) << 32) | static_cast<unsigned>(~value));
    of_type(rows, static_cast<float>(value) / 4);
    of_type(rows, static_cast<double>(value) / 4);
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
    // Eight bytes, of which the upper four tell lanes apart; floats; odd lanes alone.
    rows.write(static_cast<int>(__match_any_sync(FULL, (static_cast<long long>(lane % 3) << 32) | 7)));
    rows.write(static_cast<int>(__match_any_sync(FULL, static_cast<float>(lane / 8))));
    int any = -1, all = -1, agreed = -1, differed = -1;
    if (lane % 2 == 1) {
        any = static_cast<int>(__match_any_sync(ODD, lane % 5));
        all = static_cast<int>(__match_all_sync(ODD, lane % 2, &agreed));
        __match_all_sync(ODD, lane, &differed);
    }
    rows.write(any);
    rows.write(all);
    rows.write(agreed);
    rows.write(differed);
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
    // The greatest is negative as an integer, and the greatest of all without a sign.
    rows.write(__reduce_max_sync(FULL, lane == 3 ? -1 : -value));
    rows.write(static_cast<int>(__reduce_max_sync(FULL, lane == 3 ? FULL : bits)));
    rows.write(static_cast<int>(__reduce_min_sync(FULL, lane == 3 ? FULL : bits)));
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
    __syncwarp();
    // Two halves of the warp, each behind a barrier of its own.
    at[threadIdx.x] = 2 * value;
    if (lane < 16) {
        __syncwarp(0x0000ffffu);
        got = at[threadIdx.x ^ 15];
    } else {
        __syncwarp(0xffff0000u);
        got = at[threadIdx.x ^ 8];
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
    votes_apart(rows, lane);
    shuffles<2>(rows, value);
    shuffles<4>(rows, value);
    shuffles<8>(rows, value);
    shuffles<16>(rows, value);
    shuffles<32>(rows, value);
    shuffles_of_odd_lanes(rows, lane, value);
    sources(rows, lane, value);
    half_a_warp(rows, lane, value);
    types(rows, value);
    matches(rows, lane);
    reductions(rows, lane, value);
    exchange(rows, lane, value);
}

template <int Width>
__device__ __forceinline__ void sixteen_by(Rows &rows, int value)
{
    constexpr unsigned HERE = 0xffffu;
    rows.write(__shfl_sync(HERE, value, Width - 1, Width));
    rows.write(__shfl_up_sync(HERE, value, 2, Width));
    rows.write(__shfl_down_sync(HERE, value, 2, Width));
    rows.write(__shfl_xor_sync(HERE, value, Width - 1, Width));
}

// Document E's block of 16 threads, half a warp: all of those who are there take part.
__global__ void sixteen_threads(int *out)
{
    Rows rows{out};
    const int thread = threadIdx.x;
    const int value = value_of(thread);
    sixteen_by<2>(rows, value);
    sixteen_by<4>(rows, value);
    sixteen_by<8>(rows, value);
    sixteen_by<16>(rows, value);
    rows.write(static_cast<int>(__ballot_sync(0xffffu, thread % 3 == 1)));
    rows.write(__all_sync(0xffffu, thread < 16));
    rows.write(__any_sync(0xffffu, thread > 15));
    rows.write(__reduce_add_sync(0xffffu, value));
}
