#ifndef RUNNER_CUDA_H
#define RUNNER_CUDA_H
// The only type of the driver's interface that a kernel can use, as a parameter: 128 opaque bytes.
struct alignas(64) CUtensorMap {
    unsigned long long opaque[16];
};
#endif
