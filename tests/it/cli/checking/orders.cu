// Two orders of one sum: they differ by some 1e-8, and relative to a result near 0 by more than 1e-5.
__global__ void forward(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 3 < n) y[i] = ((x[i] - x[i + 1]) + x[i + 2]) - x[i + 3]; else if (i < n) y[i] = 0;
}
__global__ void backward(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 3 < n) y[i] = x[i] - (x[i + 1] - (x[i + 2] - x[i + 3])); else if (i < n) y[i] = 0;
}
__global__ void wrong_sign(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 3 < n) y[i] = ((x[i] - x[i + 1]) + x[i + 2]) + x[i + 3]; else if (i < n) y[i] = 0;
}
__global__ void zeros(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0;
}
