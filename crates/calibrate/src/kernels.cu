// Kernels that each measure a single limit of a machine. The values read are combined, and stored only if the result is
// one that zeros cannot give.

typedef unsigned long long Count;

__device__ unsigned bits(uint4 v) { return v.x | v.y | v.z | v.w; }

__device__ void keep(unsigned seen, unsigned* sink) {
    if (seen == 1592594996u) *sink = seen;
}

// Reads `vectors` 16-byte vectors once, each by `load`, and combines them into `seen`. Each thread has `V` loads in
// flight. If the grid does not cover all vectors, it continues in strides.
template <int V, typename Load>
__device__ void read_each(const uint4* from, Count vectors, Load load, unsigned& seen) {
    const Count stride = Count(gridDim.x) * blockDim.x * V;
    for (Count base = Count(blockIdx.x) * blockDim.x * V + threadIdx.x; base < vectors; base += stride) {
        uint4 held[V];
#pragma unroll
        for (int k = 0; k < V; k++) {
            const Count i = base + Count(k) * blockDim.x;
            held[k] = i < vectors ? load(from + i) : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int k = 0; k < V; k++) seen |= bits(held[k]);
    }
}

// Reads a buffer once, from device memory.
template <int V>
__global__ void read_all(const uint4* from, Count vectors, unsigned* sink) {
    unsigned seen = 0;
    read_each<V>(from, vectors, [](const uint4* at) { return __ldcs(at); }, seen);
    keep(seen, sink);
}

// Reads a buffer that is in L2 `rounds` times, without L1.
template <int V>
__global__ void read_again(const uint4* from, Count vectors, unsigned rounds, unsigned* sink) {
    unsigned seen = 0;
    for (unsigned round = 0; round < rounds; round++) {
        read_each<V>(from, vectors, [](const uint4* at) { return __ldcg(at); }, seen);
    }
    keep(seen, sink);
}

// Writes `vectors` 16-byte vectors of zeros, distributed as in `read_each`.
template <int V>
__global__ void write_all(uint4* to, Count vectors) {
    const Count stride = Count(gridDim.x) * blockDim.x * V;
    for (Count base = Count(blockIdx.x) * blockDim.x * V + threadIdx.x; base < vectors; base += stride) {
#pragma unroll
        for (int k = 0; k < V; k++) {
            const Count i = base + Count(k) * blockDim.x;
            if (i < vectors) __stcs(to + i, make_uint4(0, 0, 0, 0));
        }
    }
}

// Copies `vectors` 16-byte vectors, distributed as in `read_each`.
template <int V>
__global__ void copy_all(const uint4* from, uint4* to, Count vectors) {
    const Count stride = Count(gridDim.x) * blockDim.x * V;
    for (Count base = Count(blockIdx.x) * blockDim.x * V + threadIdx.x; base < vectors; base += stride) {
        uint4 held[V];
#pragma unroll
        for (int k = 0; k < V; k++) {
            const Count i = base + Count(k) * blockDim.x;
            if (i < vectors) held[k] = __ldcs(from + i);
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            const Count i = base + Count(k) * blockDim.x;
            if (i < vectors) __stcs(to + i, held[k]);
        }
    }
}

// Multiplies and adds: 256 times per round, in eight independent chains.
template <typename T>
__global__ void multiply_add(T factor, T addend, unsigned rounds, T* sink) {
    T chain[8];
#pragma unroll
    for (int k = 0; k < 8; k++) chain[k] = T(threadIdx.x + k);
    for (unsigned round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 256; i++) chain[i % 8] = chain[i % 8] * factor + addend;
    }
    T sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) sum += chain[k];
    if (sum == T(0.123456789)) *sink = sum;
}

// The same with pairs of halves, passed as bits so that no header is needed.
__global__ void multiply_add_halves(unsigned factor, unsigned addend, unsigned rounds, unsigned* sink) {
    unsigned chain[8];
#pragma unroll
    for (int k = 0; k < 8; k++) chain[k] = threadIdx.x + k;
    for (unsigned round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 256; i++)
            asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(chain[i % 8]) : "r"(factor), "r"(addend));
    }
    unsigned all = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) all |= chain[k];
    keep(all, sink);
}

// An empty kernel: its measured time is the overhead of the measurement.
__global__ void nothing() {}

// Every thread waits for `cycles` of the SM clock.
__global__ void wait_for(Count cycles, unsigned* sink) {
    const long long begin = clock64();
    while (Count(clock64() - begin) < cycles) {}
    if (cycles == ~Count(0)) *sink = 1;
}
