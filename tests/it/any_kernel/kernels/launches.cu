#include <cstdio>

// One block for each half, until a half is a single element.
__global__ void halve(int *out, int first, int count) {
    if (count == 1) {
        out[first] = first * first;
        return;
    }
    int half = count / 2;
    halve<<<1, 1>>>(out, first, half);
    halve<<<1, 1>>>(out, first + half, count - half);
}

int main() {
    int *out;
    cudaMalloc(&out, 37 * sizeof(int));
    halve<<<1, 1>>>(out, 0, 37);
    std::printf("%d\n", cudaDeviceSynchronize());
}
