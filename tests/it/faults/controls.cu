// Copies with one thing wrong each. `n / 3` and `n / 2` are where the faults of single elements lie.

template <typename T>
struct Copy {
    const T *in;
    T *out;
    unsigned n;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    __device__ Copy(const T *in, T *out, unsigned n) : in(in), out(out), n(n) {}
    __device__ void all_but(unsigned skipped) const {
        if (i < n && i != skipped) out[i] = in[i];
    }
    __device__ void all() const { all_but(n); }
};

template <typename T>
__global__ void sound(const T *in, T *out, unsigned n) {
    Copy<T>(in, out, n).all();
}

template <typename T>
__global__ void writes_nan(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all_but(n / 3);
    if (copy.i == n / 3) out[copy.i] = static_cast<T>(__int_as_float(0x7fc00000));
}

template <typename T>
__global__ void writes_infinity(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all_but(n / 3);
    if (copy.i == n / 3) out[copy.i] = static_cast<T>(__int_as_float(0x7f800000));
}

template <typename T>
__global__ void leaves_zeros(const T *, T *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = T(0);
}

template <typename T>
__global__ void writes_nothing(const T *, T *, unsigned) {}

template <typename T>
__global__ void skips_the_last(const T *in, T *out, unsigned n) {
    Copy<T>(in, out, n).all_but(n - 1);
}

template <typename T>
__global__ void one_past_the_end(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all();
    if (copy.i == n) out[n] = T(7);
}

template <typename T>
__global__ void before_the_start(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all();
    if (copy.i == 0) out[-1] = T(7);
}

template <typename T>
__global__ void changes_its_input(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all();
    if (copy.i == 5) const_cast<T *>(in)[5] = T(7000);
}

// One element, some representable values above the right one.
template <typename T, int steps_of_float, int steps_of_int>
__global__ void off_in_the_middle(const T *in, T *out, unsigned n) {
    Copy<T> copy(in, out, n);
    copy.all_but(n / 2);
    if (copy.i == n / 2) {
        constexpr int steps = T(0.5f) > T(0) ? steps_of_float : steps_of_int;
        static_assert(sizeof(T) == sizeof(int), "the bits of both types are moved as those of an int");
        reinterpret_cast<int *>(out)[copy.i] = reinterpret_cast<const int *>(in)[copy.i] + steps;
    }
}

template <typename T>
__global__ void does_not_compile(const T *in, T *out, unsigned n) {
    static_assert(sizeof(T) == 0, "this kernel is here to be refused");
    Copy<T>(in, out, n).all();
}

template <typename T>
__global__ void takes_static_shared(const T *in, T *out, unsigned n) {
    __shared__ volatile T tile[256];
    tile[threadIdx.x] = T(1);
    Copy<T>(in, out, n).all();
}

template <typename T>
__global__ void takes_scratch(const T *in, T *out, unsigned n, T *scratch) {
    Copy<T> copy(in, out, n);
    copy.all();
    if (copy.i < n) scratch[copy.i] = in[copy.i];
}
