// The runner's own kernels. They fill, hash and compare buffers on the device, so that no gigabytes cross the bus.
// Their results are bit-identical to those of `fill.rs` and `compare.rs` on the host, which a test checks on the
// simulator and on a GPU. `kernels.ptx` is compiled from this file; see the test `own_kernels`.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

// In the order of `ElementType`.
enum Element : u32 { I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 };

__device__ u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ u64 thread_count() { return (u64)gridDim.x * blockDim.x; }

// ---- initial contents -----------------------------------------------------------------------------------------------

enum Fill : u32 { CONSTANT, IOTA_INTEGER, IOTA_FLOAT, UNIFORM_INTEGER, UNIFORM_WIDE, UNIFORM_FLOAT };

// Capacity of the list of chunks with a rejected draw; all of them are counted.
enum : u64 { LISTED = 511 };

__device__ void store(void *out, u64 i, u32 element, u64 bits) {
    switch (element) {
    case I8: case U8: ((u8 *)out)[i] = (u8)bits; break;
    case I16: case U16: case F16: case BF16: ((u16 *)out)[i] = (u16)bits; break;
    case I32: case U32: case F32: ((u32 *)out)[i] = (u32)bits; break;
    default: ((u64 *)out)[i] = bits;
    }
}

__device__ u64 bits_of(double value, u32 element) {
    return element == F32 ? __float_as_uint((float)value) : (u64)__double_as_longlong(value);
}

__device__ double narrowed(double value, u32 element) { return element == F32 ? (double)(float)value : value; }

__device__ u32 rotated(u32 x, int by) { return x << by | x >> (32 - by); }

__device__ void quarter(u32 &a, u32 &b, u32 &c, u32 &d) {
    a += b; d = rotated(d ^ a, 16);
    c += d; b = rotated(b ^ c, 12);
    a += b; d = rotated(d ^ a, 8);
    c += d; b = rotated(b ^ c, 7);
}

// Block `counter` of the ChaCha8 stream `stream` under a 256-bit key.
__device__ void chacha8(const u64 (&key)[4], u64 stream, u64 counter, u32 (&x)[16]) {
    const u32 first[16] = {
        0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,
        (u32)key[0], (u32)(key[0] >> 32), (u32)key[1], (u32)(key[1] >> 32),
        (u32)key[2], (u32)(key[2] >> 32), (u32)key[3], (u32)(key[3] >> 32),
        (u32)counter, (u32)(counter >> 32), (u32)stream, (u32)(stream >> 32),
    };
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] = first[i];
#pragma unroll 1
    for (int round = 0; round < 4; round++) {
        quarter(x[0], x[4], x[8], x[12]);
        quarter(x[1], x[5], x[9], x[13]);
        quarter(x[2], x[6], x[10], x[14]);
        quarter(x[3], x[7], x[11], x[15]);
        quarter(x[0], x[5], x[10], x[15]);
        quarter(x[1], x[6], x[11], x[12]);
        quarter(x[2], x[7], x[8], x[13]);
        quarter(x[3], x[4], x[9], x[14]);
    }
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] += first[i];
}

// Computes an element's bits from its draw. False if rejected, which shifts all later draws of its chunk.
__device__ bool drawn(u32 kind, u32 element, u64 draw, u64 a, u64 b, u64 c, u64 d, u64 &bits) {
    if (kind == UNIFORM_INTEGER) {
        u64 product = draw * b;
        bits = a + (product >> 32);
        return (u32)product >= (u32)c;
    }
    if (kind == UNIFORM_WIDE) {
        bits = a + (b == 0 ? draw : __umul64hi(draw, b));
        return b == 0 || draw * b >= c;
    }
    double low = __longlong_as_double(a), high = __longlong_as_double(b);
    double u = element == F64 ? (double)(draw >> 11) * 0x1p-53 : (double)draw * 0x1p-32;
    double value = narrowed(__dadd_rn(__dmul_rn(low, __dadd_rn(1.0, -u)), __dmul_rn(high, u)), element);
    if (value >= high) value = __longlong_as_double(c);
    if (value < low) value = __longlong_as_double(d);
    bits = bits_of(value, element);
    return true;
}

// Writes the elements from `begin` to `end`. `found[0]` counts rejected draws; the chunks of the first ones follow.
extern "C" __global__ void runner_fill(
    void *out, u64 begin, u64 end, u32 element, u32 kind, u64 a, u64 b, u64 c, u64 d, u64 k0, u64 k1, u64 k2, u64 k3, u64 *found) {
    if (kind == CONSTANT || kind == IOTA_INTEGER || kind == IOTA_FLOAT) {
        for (u64 i = begin + thread_number(); i < end; i += thread_count()) {
            u64 bits = a;
            if (kind == IOTA_INTEGER) bits = a + b * i;
            if (kind == IOTA_FLOAT) {
                double value = __dadd_rn(__longlong_as_double(a), __dmul_rn(__longlong_as_double(b), (double)i));
                bits = bits_of(value, element);
            }
            store(out, i, element, bits);
        }
        return;
    }
    const u64 key[4] = {k0, k1, k2, k3};
    const bool wide = kind == UNIFORM_WIDE || element == F64;
    const u64 draws = wide ? 8 : 16;
    for (u64 block = begin / draws + thread_number(); block * draws < end; block += thread_count()) {
        u64 first = block * draws;
        u32 x[16];
        chacha8(key, first >> 16, (first & 0xffff) / draws, x);
#pragma unroll 1
        for (u32 i = first < begin ? begin - first : 0; i < draws && first + i < end; i++) {
            u64 draw = wide ? x[2 * i] | (u64)x[2 * i + 1] << 32 : x[i];
            u64 place = first + i, bits;
            if (!drawn(kind, element, draw, a, b, c, d, bits)) {
                u64 nth = atomicAdd(&found[0], 1ULL);
                if (nth < LISTED) found[1 + nth] = first >> 16;
            }
            store(out, place, element, bits);
        }
    }
}

// ---- digests of contents ---------------------------------------------------------------------------------------------

__device__ u64 mixed(u64 x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

// Adds to `found[0]` a sum over 8-byte words and their positions. Changing one word always changes it.
extern "C" __global__ void runner_digest(const u8 *data, u64 bytes, u64 *found) {
    u64 sum = 0;
    const bool aligned = ((u64)data & 7) == 0;
    for (u64 i = thread_number(); i * 8 < bytes; i += thread_count()) {
        u64 word = 0;
        if (aligned && i * 8 + 8 <= bytes) {
            word = ((const u64 *)data)[i];
        } else {
            for (u64 at = i * 8; at < bytes && at < i * 8 + 8; at++) word |= (u64)data[at] << at % 8 * 8;
        }
        sum += mixed(word ^ mixed(i + 1));
    }
    for (int away = 16; away > 0; away /= 2) sum += __shfl_xor_sync(0xffffffff, sum, away);
    if (threadIdx.x % 32 == 0) atomicAdd(&found[0], sum);
}

// ---- comparisons -----------------------------------------------------------------------------------------------------

enum Shape : u32 { NUMBER, ARRAY, SUM };
enum Rule : u32 { INTEGERS, INTEGERS_OF_U64_AND_OTHERS, FLOATS, INTEGERS_WITH_FLOATS };

// Sign- or zero-extended; u64 as its bits.
__device__ i64 integer(const void *data, u64 i, u32 element) {
    switch (element) {
    case I8: return ((const i8 *)data)[i];
    case I16: return ((const i16 *)data)[i];
    case I32: return ((const i32 *)data)[i];
    case U8: return ((const u8 *)data)[i];
    case U16: return ((const u16 *)data)[i];
    case U32: return ((const u32 *)data)[i];
    default: return ((const i64 *)data)[i];
    }
}

// Wraps an integer after arithmetic that may have left the range of its type.
__device__ i64 wrapped(i64 value, u32 element) {
    switch (element) {
    case I8: return (i8)value;
    case I16: return (i16)value;
    case I32: return (i32)value;
    case U8: return (u8)value;
    case U16: return (u16)value;
    case U32: return (u32)value;
    default: return value;
    }
}

__device__ double rounded(i64 value, u32 element) { return element == U64 ? (double)(u64)value : (double)value; }

__device__ double number(const void *data, u64 i, u32 element) {
    switch (element) {
    case F16: {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(((const u16 *)data)[i]));
        return value;
    }
    case BF16: return __uint_as_float((u32)((const u16 *)data)[i] << 16);
    case F32: return ((const float *)data)[i];
    case F64: return ((const double *)data)[i];
    default: return rounded(integer(data, i, element), element);
    }
}

// Spacing of f32 or f64 at a finite value.
__device__ double last_place(double value, u32 element) {
    int digits = element == F32 ? 24 : 53, least = element == F32 ? -126 : -1022;
    int exponent = (int)((u64)__double_as_longlong(value) >> 52 & 0x7ff) - 1023;
    int place = (exponent > least ? exponent : least) - (digits - 1);
    return __longlong_as_double(place >= -1022 ? (i64)(place + 1023) << 52 : 1LL << (place + 1074));
}

// Whether a float is certain to pass. The host decides the rest (a few ULP for f16 and bf16).
__device__ bool passes(double got, double expected, u32 element, double abs, double rel, double ulp) {
    const double infinity = __longlong_as_double(0x7ff0000000000000LL);
    double difference = fabs(got - expected);
    if ((difference <= abs || difference <= __dmul_rn(rel, fabs(expected))) && difference < infinity) return true;
    if (expected != expected) return got != got;
    if (element != F32 && element != F64) return false;
    double nearest = narrowed(expected, element);
    if (fabs(nearest) == infinity) return got == nearest;
    double places = fabs(got - nearest);
    return places < infinity && places <= __dmul_rn(ulp, last_place(nearest, element));
}

// Counts in `found[0]` the elements of `got` that may fail; `found[1]` is the complement of the first one's index.
extern "C" __global__ void runner_compare(
    const void *got, u32 got_element, const void *left, const void *right, u32 element, u32 shape, u64 constant, u32 rule,
    u64 len, double abs, double rel, double ulp, u64 *found) {
    u64 doubtful = 0, first = 0;
    const bool constant_is_float = element == F64;
    for (u64 i = thread_number(); i < len; i += thread_count()) {
        bool right_one;
        if (rule == INTEGERS || rule == INTEGERS_OF_U64_AND_OTHERS) {
            i64 wanted = shape == NUMBER ? (i64)constant : integer(left, i, element);
            if (shape == SUM) wanted = wrapped(wanted + integer(right, i, element), element);
            i64 value = integer(got, i, got_element);
            right_one = value == wanted && (rule == INTEGERS || value >= 0);
        } else {
            double wanted;
            if (shape == NUMBER) {
                wanted = constant_is_float ? __longlong_as_double(constant) : rounded(constant, element);
            } else if (shape == SUM && element < F16) {
                wanted = rounded(wrapped(integer(left, i, element) + integer(right, i, element), element), element);
            } else {
                wanted = number(left, i, element);
                if (shape == SUM) wanted = __dadd_rn(wanted, number(right, i, element));
            }
            double value = number(got, i, got_element);
            right_one = rule == FLOATS ? passes(value, wanted, got_element, abs, rel, ulp) : value == wanted;
        }
        if (!right_one) {
            if (doubtful == 0) first = i;
            doubtful++;
        }
    }
    if (doubtful != 0) {
        atomicAdd(&found[0], doubtful);
        atomicMax(&found[1], ~first);
    }
}

// ---- hidden expected values -----------------------------------------------------------------------------------------

// XORs bytes with a ChaCha8 stream, which masks or unmasks them.
extern "C" __global__ void runner_mask(u32 *data, u64 bytes, u64 k0, u64 k1, u64 k2, u64 k3, u64 stream) {
    const u64 key[4] = {k0, k1, k2, k3};
    u32 x[16];
    for (u64 block = thread_number(); block * 64 < bytes; block += thread_count()) {
        chacha8(key, stream, block, x);
#pragma unroll 1
        for (int i = 0; i < 16; i++) {
            const u64 at = block * 64 + i * 4;
            if (at + 4 <= bytes) {
                data[at / 4] ^= x[i];
            } else {
#pragma unroll 1
                for (int b = 0; at + b < bytes; b++) ((u8 *)data)[at + b] ^= (u8)(x[i] >> 8 * b);
            }
        }
    }
}
