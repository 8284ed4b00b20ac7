// Pairs of kernels, each before and after a rewrite that programmers make. Every kernel has the same parameters: `in` and
// `out` have 16 elements per thread, `n` is the number of threads, and blocks have 256 threads.

#define KERNEL(name) extern "C" __global__ void name(const int *in, int *out, int n)
#define I (blockIdx.x * 256 + threadIdx.x)
#define FLOATS(p) (reinterpret_cast<const float *>(p))
#define STORE(value) (reinterpret_cast<float *>(out)[I] = (value))

// A power of two: a mask for a remainder.
KERNEL(mask_old)
{
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = in[I];
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
KERNEL(mask_new)
{
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = in[I];
    __syncthreads();
    for (unsigned stride = 1; stride < blockDim.x; stride *= 2) {
        if ((t & (2 * stride - 1)) == 0) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

// A divisor that the compiler knows.
KERNEL(constant_divisor_old) { out[I] = in[I] / (n >> 9); }
KERNEL(constant_divisor_new) { out[I] = in[I] / 7; }

// Numbers that are never negative, as unsigned ones.
KERNEL(unsigned_divisor_old) { out[I] = in[I] / 8 + in[I] % 24; }
KERNEL(unsigned_divisor_new) { out[I] = unsigned(in[I]) / 8 + unsigned(in[I]) % 24; }

// A running index in place of a product.
KERNEL(strength_old)
{
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 16; ++k) sum += in[(k * n + int(I)) * 1];
    out[I] = sum;
}
KERNEL(strength_new)
{
    int sum = 0;
    const int *p = in + I;
#pragma unroll 1
    for (int k = 0; k < 16; ++k, p += n) sum += *p;
    out[I] = sum;
}

// An unrolled loop.
KERNEL(unrolled_old)
{
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 16; ++k) sum += in[k * 1024 + (I & 1023)];
    out[I] = sum;
}
KERNEL(unrolled_new)
{
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += in[k * 1024 + (I & 1023)];
    out[I] = sum;
}

// One load of a vector for four loads.
KERNEL(vector_loads_old)
{
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += in[4 * I + k];
    out[I] = sum;
}
KERNEL(vector_loads_new)
{
    const int4 v = reinterpret_cast<const int4 *>(in)[I];
    out[I] = v.x + v.y + v.z + v.w;
}

// Vectors in shared memory that the compiler makes by itself.
KERNEL(merged_loads_old)
{
    __shared__ float tile[16 * 128];
    for (unsigned k = 0; k < 8; ++k) tile[k * 256 + threadIdx.x] = FLOATS(in)[k * 256 + threadIdx.x];
    __syncthreads();
    const unsigned column = threadIdx.x % 16;
    float sums[8] = {0};
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) sums[i] += tile[row * 128 + column * 8 + i];
    float sum = 0;
    for (unsigned i = 0; i < 8; ++i) sum += sums[i];
    STORE(sum);
}
KERNEL(merged_loads_new)
{
    __shared__ float4 tile[16 * 32];
    for (unsigned k = 0; k < 2; ++k)
        tile[k * 256 + threadIdx.x] = reinterpret_cast<const float4 *>(in)[k * 256 + threadIdx.x];
    __syncthreads();
    const unsigned column = threadIdx.x % 16;
    float4 a = make_float4(0, 0, 0, 0), b = a;
    for (unsigned row = 0; row < 16; ++row) {
        const float4 x = tile[row * 32 + column * 2], y = tile[row * 32 + column * 2 + 1];
        a.x += x.x, a.y += x.y, a.z += x.z, a.w += x.w;
        b.x += y.x, b.y += y.y, b.z += y.z, b.w += y.w;
    }
    STORE(a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w);
}

// The same behind a loop whose copies do not say how often each is executed.
KERNEL(looped_loads_old)
{
    __shared__ float tile[16 * 128];
    for (unsigned i = threadIdx.x; i < 16 * 128; i += 256) tile[i] = FLOATS(in)[i];
    __syncthreads();
    const unsigned column = threadIdx.x % 16;
    float sums[8] = {0};
    for (unsigned row = 0; row < 16; ++row)
        for (unsigned i = 0; i < 8; ++i) sums[i] += tile[row * 128 + column * 8 + i];
    float sum = 0;
    for (unsigned i = 0; i < 8; ++i) sum += sums[i];
    STORE(sum);
}
KERNEL(looped_loads_new)
{
    __shared__ float4 tile[16 * 32];
    for (unsigned i = threadIdx.x; i < 16 * 32; i += 256) tile[i] = reinterpret_cast<const float4 *>(in)[i];
    __syncthreads();
    const unsigned column = threadIdx.x % 16;
    float4 a = make_float4(0, 0, 0, 0), b = a;
    for (unsigned row = 0; row < 16; ++row) {
        const float4 x = tile[row * 32 + column * 2], y = tile[row * 32 + column * 2 + 1];
        a.x += x.x, a.y += x.y, a.z += x.z, a.w += x.w;
        b.x += y.x, b.y += y.y, b.z += y.z, b.w += y.w;
    }
    STORE(a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w);
}

// A product in place of a branch.
KERNEL(predicated_old)
{
    const int x = in[I];
    int y = x;
    if (x % 3 == 0) y = x * x + in[I + n];
    out[I] = y;
}
KERNEL(predicated_new)
{
    const int x = in[I], z = in[I + n];
    out[I] = x % 3 == 0 ? x * x + z : x;
}

// A padded tile.
KERNEL(padding_old)
{
    __shared__ int tile[32][32];
    const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (unsigned k = 0; k < 32; k += 8) tile[y + k][x] = in[blockIdx.x * 1024 + (y + k) * 32 + x];
    __syncthreads();
    for (unsigned k = 0; k < 32; k += 8) out[blockIdx.x * 1024 + (y + k) * 32 + x] = tile[x][y + k];
}
KERNEL(padding_new)
{
    __shared__ int tile[32][33];
    const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
    for (unsigned k = 0; k < 32; k += 8) tile[y + k][x] = in[blockIdx.x * 1024 + (y + k) * 32 + x];
    __syncthreads();
    for (unsigned k = 0; k < 32; k += 8) out[blockIdx.x * 1024 + (y + k) * 32 + x] = tile[x][y + k];
}

// Fewer registers than the values need.
__device__ __forceinline__ void many_values(const int *in, int *out, int n)
{
    float v[48];
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = FLOATS(in)[(k & 15) * n + I] + float(k);
#pragma unroll
    for (int r = 0; r < 3; ++r)
#pragma unroll
        for (int k = 0; k < 48; ++k) v[k] = fmaf(v[k], v[(k * 5 + 7 + r) % 48], v[(k + 11) % 48]);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 48; ++k) sum += v[k];
    STORE(sum);
}
KERNEL(bounds_old) { many_values(in, out, n); }
extern "C" __global__ void __launch_bounds__(256, 8) bounds_new(const int *in, int *out, int n) { many_values(in, out, n); }

// A product and a sum in one instruction.
KERNEL(contracted_old)
{
    float y = FLOATS(in)[I];
#pragma unroll
    for (int k = 0; k < 8; ++k) y = __fadd_rn(__fmul_rn(y, 0.5f), float(k));
    STORE(y);
}
KERNEL(contracted_new)
{
    float y = FLOATS(in)[I];
#pragma unroll
    for (int k = 0; k < 8; ++k) y = y * 0.5f + float(k);
    STORE(y);
}

// A value that a loop loads again and again.
KERNEL(hoisted_old)
{
    for (int k = 0; k < 8; ++k) out[k * n + I] = in[blockIdx.x] + k;
}
KERNEL(hoisted_new)
{
    const int first = in[blockIdx.x];
    for (int k = 0; k < 8; ++k) out[k * n + I] = first + k;
}

// One store of a selected value.
KERNEL(selected_old)
{
    const int x = in[I];
    if (x & 1) {
        for (int k = 0; k < 3; ++k) out[k * n + I] = x + k;
    } else {
        for (int k = 0; k < 3; ++k) out[k * n + I] = k - x;
    }
}
KERNEL(selected_new)
{
    const int x = in[I], y = x & 1 ? x : -x;
    for (int k = 0; k < 3; ++k) out[k * n + I] = y + k;
}

// Indices of 32 bits.
KERNEL(narrow_index_old)
{
    long long sum = 0;
#pragma unroll 1
    for (long long k = I; k < 8LL * n; k += n) sum += in[k] * k;
    out[I] = int(sum);
}
KERNEL(narrow_index_new)
{
    int sum = 0;
#pragma unroll 1
    for (int k = I; k < 8 * n; k += n) sum += in[k] * k;
    out[I] = sum;
}

// Products of 32 bits.
KERNEL(narrow_product_old)
{
    long long x = in[I];
#pragma unroll
    for (int k = 0; k < 6; ++k) x = x * x + (x >> 3) + k;
    out[I] = int(x);
}
KERNEL(narrow_product_new)
{
    int x = in[I];
#pragma unroll
    for (int k = 0; k < 6; ++k) x = x * x + (x >> 3) + k;
    out[I] = x;
}

// Pointers that do not alias.
KERNEL(restrict_old)
{
    for (int k = 0; k < 4; ++k) out[k * n + I] = in[I] * in[I + n] + k;
}
extern "C" __global__ void restrict_new(const int *__restrict__ in, int *__restrict__ out, int n)
{
    for (int k = 0; k < 4; ++k) out[k * n + I] = in[I] * in[I + n] + k;
}

// Lanes that pass values without memory.
KERNEL(shuffled_old)
{
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = in[I];
    for (unsigned offset = 16; offset > 0; offset /= 2) {
        __syncwarp();
        const int other = s[t ^ offset];
        __syncwarp();
        s[t] += other;
    }
    out[I] = s[t];
}
KERNEL(shuffled_new)
{
    int x = in[I];
    for (unsigned offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffff, x, offset);
    out[I] = x;
}

// Neighbouring lanes load neighbouring elements.
KERNEL(coalesced_old)
{
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; ++k) sum += in[I * 8 + k];
    out[I] = sum;
}
KERNEL(coalesced_new)
{
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; ++k) sum += in[I + k * n];
    out[I] = sum;
}

// Branches that whole warps take.
KERNEL(uniform_branch_old)
{
    const unsigned t = threadIdx.x;
    int x = in[I];
    if (t % 2 == 0) {
#pragma unroll 1
        for (int k = 0; k < 10; ++k) x = x * 3 + (x >> 2);
    } else {
#pragma unroll 1
        for (int k = 0; k < 10; ++k) x = (x ^ k) + 5 * x;
    }
    out[I] = x;
}
KERNEL(uniform_branch_new)
{
    const unsigned t = threadIdx.x;
    int x = in[I];
    if (t / 32 % 2 == 0) {
#pragma unroll 1
        for (int k = 0; k < 10; ++k) x = x * 3 + (x >> 2);
    } else {
#pragma unroll 1
        for (int k = 0; k < 10; ++k) x = (x ^ k) + 5 * x;
    }
    out[I] = x;
}

// A reciprocal square root.
KERNEL(reciprocal_root_old) { STORE(1.0f / sqrtf(float(in[I]) + 1.0f)); }
KERNEL(reciprocal_root_new) { STORE(rsqrtf(float(in[I]) + 1.0f)); }

// A division that is not exact.
KERNEL(fast_division_old) { STORE((float(in[I]) + 1.0f) / (float(in[I + n]) + 1.0f)); }
KERNEL(fast_division_new) { STORE(__fdividef(float(in[I]) + 1.0f, float(in[I + n]) + 1.0f)); }

// Constants of single precision.
KERNEL(single_constants_old) { STORE(float(float(in[I]) * 0.3 + 1.7)); }
KERNEL(single_constants_new) { STORE(float(in[I]) * 0.3f + 1.7f); }

// A power as products.
KERNEL(power_old) { STORE(powf(float(in[I]) + 1.0f, 3.5f)); }
KERNEL(power_new) { const float x = float(in[I]) + 1.0f; STORE(x * x * x * sqrtf(x)); }

// One atomic of each block.
KERNEL(aggregated_old) { atomicAdd(out + (in[I] & 7), 1); }
KERNEL(aggregated_new)
{
    __shared__ int bins[8];
    if (threadIdx.x < 8) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(bins + (in[I] & 7), 1);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}

// A barrier that counts.
KERNEL(counting_barrier_old)
{
    __shared__ int count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    if (in[I] % 3 == 0) atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}
KERNEL(counting_barrier_new)
{
    const int count = __syncthreads_count(in[I] % 3 == 0);
    if (threadIdx.x == 0) out[blockIdx.x] = count;
}

// The last warp without barriers of the block.
KERNEL(last_warp_old)
{
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = in[I];
    __syncthreads();
    for (unsigned stride = 128; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
KERNEL(last_warp_new)
{
    __shared__ int s[256];
    const unsigned t = threadIdx.x;
    s[t] = in[I];
    __syncthreads();
    for (unsigned stride = 128; stride > 16; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t < 32) {
        int x = s[t];
        for (unsigned offset = 16; offset > 0; offset /= 2) x += __shfl_down_sync(0xffffffff, x, offset);
        if (t == 0) out[blockIdx.x] = x;
    }
}

// An array in registers.
KERNEL(registers_old)
{
    int v[8];
    for (int k = 0; k < 8; ++k) v[k] = in[I + k * n];
    int at = 0, sum = 0;
#pragma unroll 1
    for (int k = 0; k < 8; ++k) {
        sum += v[at];
        at = (at + 3) & 7;
    }
    out[I] = sum;
}
KERNEL(registers_new)
{
    int v[8];
    for (int k = 0; k < 8; ++k) v[k] = in[I + k * n];
    int sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += v[(3 * k) & 7];
    out[I] = sum;
}

// One test of bounds for all rounds.
KERNEL(one_test_old)
{
    int sum = 0;
    for (int k = 0; k < 8; ++k) {
        const int at = int(I) * 8 + k;
        if (at < 5 * n) sum += in[at];
    }
    out[I] = sum;
}
KERNEL(one_test_new)
{
    int sum = 0;
    if (int(I) * 8 + 7 < 5 * n) {
        for (int k = 0; k < 8; ++k) sum += in[int(I) * 8 + k];
    }
    out[I] = sum;
}

// An instruction that counts bits.
KERNEL(bit_count_old)
{
    int count = 0;
    for (unsigned x = in[I]; x != 0; x &= x - 1) ++count;
    out[I] = count;
}
KERNEL(bit_count_new) { out[I] = __popc(in[I]); }

// Spelling that makes no other code.
KERNEL(spelling_old) { out[I] = in[I] * 2 + (in[I + n] < 5 ? in[I + n] : 5); }
KERNEL(spelling_new) { const int a = in[I], b = in[I + n]; out[I] = a + a + min(b, 5); }

// A function that is not inlined.
__device__ __noinline__ int called(int x, int k) { return x * k + (x >> 1); }
__device__ __forceinline__ int inlined(int x, int k) { return x * k + (x >> 1); }
KERNEL(inlined_old)
{
    int x = in[I];
    for (int k = 0; k < 4; ++k) x = called(x, k);
    out[I] = x;
}
KERNEL(inlined_new)
{
    int x = in[I];
    for (int k = 0; k < 4; ++k) x = inlined(x, k);
    out[I] = x;
}
