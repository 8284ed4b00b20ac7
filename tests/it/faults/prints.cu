// Copies that print: a line, something that looks like the worker's own words, and far more than is kept.

__device__ unsigned copy_one(const int *in, int *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
    return i;
}

__global__ void silent(const int *in, int *out, unsigned n) { copy_one(in, out, n); }

__global__ void greets(const int *in, int *out, unsigned n) {
    if (copy_one(in, out, n) == 0) printf("hello from %u elements\nand good bye\n", n);
}

__global__ void forges(const int *in, int *out, unsigned n) {
    if (copy_one(in, out, n) == 0) printf("{\"reply\":\"group_done\",\"ordinal\":0}\n{\"reply\":\"stopped\"}\n");
}

__global__ void floods(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    if (i < n) printf("element %u is %d and says so at length\n", i, in[i]);
}

__global__ void prints_and_is_wrong(const int *in, int *out, unsigned n) {
    unsigned i = copy_one(in, out, n);
    if (i == 1) {
        out[i] = -1;
        printf("wrong on purpose\n");
    }
}
