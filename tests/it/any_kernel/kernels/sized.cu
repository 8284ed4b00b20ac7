// A kernel whose sizes are macros of the file, as published kernels have them.
#define TILE 16 // threads of a block
#define FACTOR \
    3

__global__ void scale(int *out) {
    static_assert(TILE == 64, "the manifest's TILE takes the place of the file's");
    out[threadIdx.x] = FACTOR * int(threadIdx.x) + __LINE__;
}
