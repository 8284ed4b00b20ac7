// A kernel that keeps a few blocks busy for a while, to be launched many times: what matters is how many of its launches
// run beside each other. It hardly touches memory.

// Steps of a generator of random numbers, modulo 2^32, and as many steps back: what comes out is what went in, and only
// if every step was made.
__global__ void busy(const unsigned *input, unsigned *output, unsigned first, unsigned count, unsigned steps)
{
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) {
        return;
    }
    unsigned x = input[first + at];
    for (unsigned step = 0; step < steps; ++step) {
        x = x * 1664525u + 1013904223u;
    }
    for (unsigned step = 0; step < steps; ++step) {
        x = (x - 1013904223u) * 4276115653u;
    }
    output[first + at] = x;
}
