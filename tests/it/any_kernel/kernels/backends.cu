// Reads what another warp writes, with no barrier between; the result does not depend on it.
__global__ void race(int *out) {
    __shared__ int cell[64];
    cell[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = cell[63 - threadIdx.x] != -12345;
}
