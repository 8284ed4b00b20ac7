// The same elements, loaded in different ways: the addresses of one warp decide how many sectors of 32 bytes
// and lines of 128 it touches.

__device__ __forceinline__ size_t index()
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Neighbours read neighbours, beginning in the middle of a line.
__global__ void offset(const unsigned *in, unsigned *out, size_t n, unsigned by)
{
    const size_t i = index();
    if (i < n) {
        out[i] = in[i + by];
    }
}

// Neighbours read elements `by` apart.
__global__ void stride(const unsigned *in, unsigned *out, size_t n, unsigned by)
{
    const size_t i = index();
    if (i < n) {
        out[i] = in[i * by];
    }
}

struct alignas(16) Four {
    unsigned x, y, z, w;
};

// One field of each struct: a stride in disguise.
__global__ void struct_field(const Four *in, unsigned *out, size_t n)
{
    const size_t i = index();
    if (i < n) {
        out[i] = in[i].y;
    }
}

// All fields of each struct, one load each. `volatile` keeps the compiler from making one load of the four.
__global__ void struct_fields(const volatile Four *in, unsigned *out, size_t n)
{
    const size_t i = index();
    if (i < n) {
        out[i] = in[i].x + in[i].y + in[i].z + in[i].w;
    }
}

// All fields of each struct, one load for the four.
__global__ void struct_whole(const uint4 *in, unsigned *out, size_t n)
{
    const size_t i = index();
    if (i < n) {
        const uint4 all = in[i];
        out[i] = all.x + all.y + all.z + all.w;
    }
}

// The same fields in arrays of their own, one behind the other.
__global__ void arrays(const unsigned *in, unsigned *out, size_t n)
{
    const size_t i = index();
    if (i < n) {
        out[i] = in[i] + in[n + i] + in[2 * n + i] + in[3 * n + i];
    }
}

// Loads of read-only data, and loads that say how long to keep it in the cache.
enum Hint { PLAIN, READ_ONLY, CACHE_GLOBAL, STREAMING };

template <Hint How>
__global__ void hinted(const unsigned *in, unsigned *out, size_t n)
{
    const size_t i = index();
    if (i < n) {
        unsigned value;
        if (How == READ_ONLY) {
            value = __ldg(in + i);
        } else if (How == CACHE_GLOBAL) {
            value = __ldcg(in + i);
        } else if (How == STREAMING) {
            value = __ldcs(in + i);
        } else {
            value = in[i];
        }
        out[i] = value;
    }
}

// One, two or four elements a load. n is a multiple of four.
template <typename Vector>
__global__ void vectors(const Vector *in, Vector *out, size_t n)
{
    const size_t i = index();
    if (i < n * sizeof(unsigned) / sizeof(Vector)) {
        out[i] = in[i];
    }
}
