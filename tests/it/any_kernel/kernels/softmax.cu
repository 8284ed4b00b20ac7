// Softmax of rows, one block of 128 threads per row.
__global__ void softmax(float *out, const float *in, int columns) {
    __shared__ float shared[128];
    const float *row = in + blockIdx.x * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 128) most = fmaxf(most, row[i]);
    shared[threadIdx.x] = most;
    __syncthreads();
    for (int i = 0; i < 128; ++i) most = fmaxf(most, shared[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += 128) sum += expf(row[i] - most);
    shared[threadIdx.x] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < 128; ++i) sum += shared[i];
    for (int i = threadIdx.x; i < columns; i += 128) out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}
