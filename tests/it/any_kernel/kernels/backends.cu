// Reads what another warp writes, with no barrier between; the result does not depend on it.
__global__ void race(int *out) {
    __shared__ int cell[64];
    cell[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = cell[63 - threadIdx.x] != -12345;
}

// Reads what another warp writes after a first value.
__global__ void race_only(int *out) {
    __shared__ int cell[64];
    cell[threadIdx.x] = 0;
    __syncthreads();
    cell[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = cell[63 - threadIdx.x] != -12345;
}

// The same, and reads a cell that nothing writes.
__global__ void race_and_unwritten(int *out) {
    __shared__ int cell[64];
    __shared__ int never[64];
    cell[threadIdx.x] = 0;
    if (out == nullptr) never[threadIdx.x] = 1;
    __syncthreads();
    cell[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = cell[63 - threadIdx.x] != -12345 && never[threadIdx.x] != -12345;
}
