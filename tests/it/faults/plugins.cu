// Host functions that do what such functions do, and what they must not. All are `(input, output, u32 n)`, a copy.

#include <cstdlib>

#include <cuda_runtime.h>

namespace {

__global__ void copy(const float *input, float *output, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        output[i] = input[i];
    }
}

__global__ void write_nowhere(float *output)
{
    output[threadIdx.x] = 1;
}

int queue_copy(cudaStream_t stream, void *const *args)
{
    const unsigned n = *static_cast<const unsigned *>(args[2]);
    const float *input = *static_cast<const float *const *>(args[0]);
    float *output = *static_cast<float *const *>(args[1]);
    copy<<<(n + 255) / 256, 256, 0, stream>>>(input, output, n);
    return cudaGetLastError();
}

} // namespace

extern "C" {

int right(cudaStream_t stream, void *const *args, void *)
{
    return queue_copy(stream, args);
}

// With a copy of its own between: what `prepare` allocates is there at every call.
int with_storage(cudaStream_t stream, void *const *args, void *state)
{
    const size_t bytes = sizeof(float) * *static_cast<const unsigned *>(args[2]);
    const float *input = *static_cast<const float *const *>(args[0]);
    float *output = *static_cast<float *const *>(args[1]);
    const cudaError_t error = cudaMemcpyAsync(state, input, bytes, cudaMemcpyDeviceToDevice, stream);
    return error != cudaSuccess ? error : cudaMemcpyAsync(output, state, bytes, cudaMemcpyDeviceToDevice, stream);
}

int with_storage_prepare(cudaStream_t, void *const *args, void **state)
{
    return cudaMalloc(state, sizeof(float) * *static_cast<const unsigned *>(args[2]));
}

void with_storage_release(void *state)
{
    cudaFree(state);
}

int waits(cudaStream_t stream, void *const *args, void *)
{
    const int error = queue_copy(stream, args);
    return error != cudaSuccess ? error : cudaStreamSynchronize(stream);
}

// The last element is left as it was.
int wrong(cudaStream_t stream, void *const *args, void *)
{
    unsigned fewer = *static_cast<const unsigned *>(args[2]) - 1;
    void *arguments[] = {args[0], args[1], &fewer};
    return queue_copy(stream, arguments);
}

int returns_an_error(cudaStream_t, void *const *, void *)
{
    return cudaErrorInvalidValue;
}

int returns_its_own_error(cudaStream_t, void *const *, void *)
{
    return 77;
}

const char *returns_its_own_error_error(int code)
{
    return code == 77 ? "the moon is in the wrong quarter" : nullptr;
}

int cannot_prepare(cudaStream_t stream, void *const *args, void *)
{
    return queue_copy(stream, args);
}

int cannot_prepare_prepare(cudaStream_t, void *const *, void **)
{
    return cudaErrorMemoryAllocation;
}

int crashes(cudaStream_t, void *const *, void *)
{
    std::abort();
}

int kills_the_context(cudaStream_t stream, void *const *, void *)
{
    write_nowhere<<<1, 32, 0, stream>>>(nullptr);
    return cudaGetLastError();
}

} // extern "C"
