// A struct with addresses, one in it, and arrays.
struct Shape {
    int rows, columns;
};

struct Filter {
    const float *x;
    Shape shape;
    char flags[3];
    float weights[4];
    float *y;
};

__global__ void scaled(const Filter filter, int unused) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < filter.shape.rows * filter.shape.columns) {
        filter.y[i] = filter.x[i] * filter.weights[3] + filter.flags[2] + unused;
    }
}

// Vectors begin at multiples of their size: `weight` at 16, and `last` at 32.
struct Vectors {
    float *y;
    int begin;
    float2 weight;
    float unused;
    float4 last;
};

__global__ void aligned(const Vectors vectors, const float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    vectors.y[i] = x[i] * (vectors.weight.y + vectors.last.w) + vectors.begin + vectors.unused;
}

// A struct of a template's parameters, whose elements have padding.
template <class T, int N> struct Sum {
    char table[5];
    struct {
        char unused;
        T factor;
        const float *x;
    } terms[N];
};

template <class T, int N> __global__ void summed(float *y, const __grid_constant__ Sum<T, N> sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = 0;
    for (int n = 0; n < N; n++) value += sum.terms[n].factor * sum.terms[n].x[i] * sum.table[n] + sum.terms[n].unused;
    y[i] = value;
}

// The largest struct that a launch can pass: 32,764 bytes are all parameters of a kernel.
struct Large {
    float *y;
    const float *x;
    int table[8186];
};

__global__ void looked_up(const Large large) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    large.y[i] = large.x[i] * large.table[8185];
}
