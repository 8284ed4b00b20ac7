// Greetings of grids that launch grids: what is printed says who ran at which depth.

// Each grid launches one of half as many threads.
__global__ void halves(unsigned depth)
{
    printf("depth %u: hello from thread %u of %u\n", depth, threadIdx.x, blockDim.x);
    if (threadIdx.x == 0 && blockDim.x > 1) {
        halves<<<1, blockDim.x / 2>>>(depth + 1);
        printf("depth %u: launched a grid of %u threads\n", depth, blockDim.x / 2);
    }
}

// The first thread of each block launches two blocks of three threads.
__global__ void tree(unsigned depth, unsigned last)
{
    if (threadIdx.x == 0 && depth < last) {
        tree<<<2, 3>>>(depth + 1, last);
        printf("depth %u: block %u launched\n", depth, blockIdx.x);
    }
}
