// Reductions by CUB, as host functions: `type reduce(input, result, u32 n)`. The temporary storage is allocated before
// anything is timed.

#include <cub/device/device_reduce.cuh>

namespace {

struct Storage {
    void *memory = nullptr;
    size_t bytes = 0;
};

template <typename T>
const T *input_of(void *const *args)
{
    return *static_cast<const T *const *>(args[0]);
}

template <typename T>
T *result_of(void *const *args)
{
    return *static_cast<T *const *>(args[1]);
}

unsigned count_of(void *const *args)
{
    return *static_cast<const unsigned *>(args[2]);
}

void release(void *state)
{
    auto *storage = static_cast<Storage *>(state);
    cudaFree(storage->memory);
    delete storage;
}

} // namespace

// Asked without storage, CUB says how much it needs.
#define REDUCTION(NAME, OPERATION, T)                                                                                   \
    extern "C" int NAME##_prepare(cudaStream_t stream, void *const *args, void **state)                                 \
    {                                                                                                                   \
        auto *storage = new Storage;                                                                                    \
        cudaError_t error = cub::DeviceReduce::OPERATION(nullptr, storage->bytes, input_of<T>(args),                    \
                                                         result_of<T>(args), count_of(args), stream);                   \
        if (error == cudaSuccess) {                                                                                     \
            error = cudaMalloc(&storage->memory, storage->bytes);                                                       \
        }                                                                                                               \
        if (error == cudaSuccess) {                                                                                     \
            *state = storage;                                                                                           \
        } else {                                                                                                        \
            release(storage);                                                                                           \
        }                                                                                                               \
        return error;                                                                                                   \
    }                                                                                                                   \
                                                                                                                        \
    extern "C" int NAME(cudaStream_t stream, void *const *args, void *state)                                            \
    {                                                                                                                   \
        const auto *storage = static_cast<const Storage *>(state);                                                      \
        size_t bytes = storage->bytes;                                                                                  \
        return cub::DeviceReduce::OPERATION(storage->memory, bytes, input_of<T>(args), result_of<T>(args),              \
                                            count_of(args), stream);                                                    \
    }                                                                                                                   \
                                                                                                                        \
    extern "C" void NAME##_release(void *state)                                                                         \
    {                                                                                                                   \
        release(state);                                                                                                 \
    }

REDUCTION(cub_sum_i32, Sum, int)
REDUCTION(cub_sum_f32, Sum, float)
REDUCTION(cub_min_i32, Min, int)
REDUCTION(cub_min_f32, Min, float)
REDUCTION(cub_max_i32, Max, int)
REDUCTION(cub_max_f32, Max, float)
