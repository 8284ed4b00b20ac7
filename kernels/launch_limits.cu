// How many launches a device lets be at a time, found out by asking for one after the other until one is refused.

__global__ void nothing() {}

// All at once: none of them begins before this grid has ended, which is what the tail stream promises.
__global__ void flood(int *accepted, int *code, int asked)
{
    int count = 0;
    cudaError_t error = cudaSuccess;
    while (count < asked && error == cudaSuccess) {
        nothing<<<1, 1, 0, cudaStreamTailLaunch>>>();
        error = cudaGetLastError();
        count += error == cudaSuccess;
    }
    *accepted = count;
    *code = error;
}

// One after the other: each begins when the one that launched it has ended.
__global__ void tail_chain(int *accepted, int *code, int asked, int depth)
{
    if (depth < asked) {
        tail_chain<<<1, 1, 0, cudaStreamTailLaunch>>>(accepted, code, asked, depth + 1);
    }
    const cudaError_t error = cudaGetLastError();
    if (depth == asked || error != cudaSuccess) {
        *accepted = depth;
        *code = error;
    }
}

// One below the other: none of them has ended before all below it have.
__global__ void chain(int *accepted, int *code, int asked, int depth)
{
    if (depth < asked) {
        chain<<<1, 1>>>(accepted, code, asked, depth + 1);
    }
    const cudaError_t error = cudaGetLastError();
    if (depth == asked || error != cudaSuccess) {
        *accepted = depth;
        *code = error;
    }
}
