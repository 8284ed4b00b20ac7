// SPDX-License-Identifier: MIT OR Apache-2.0
// Declarations with the names of PyTorch's C++ interface, as far as the hosts of published kernels use it, so that their
// files compile without PyTorch. Nothing here is ever called: only the kernels of such a file are used.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

// PyTorch's headers include those of cuBLAS.
struct cublasContext;
typedef cublasContext *cublasHandle_t;
enum cublasOperation_t { CUBLAS_OP_N };
void cublasSetStream(cublasHandle_t, cudaStream_t);
template <class... Arguments> void cublasHgemm(cublasHandle_t, cublasOperation_t, Arguments...);

namespace c10 {
inline constexpr std::nullopt_t nullopt = std::nullopt;
}

namespace at {
template <class T> using optional = std::optional<T>;

enum ScalarType { kFloat, kInt, kLong, kBool };

struct TensorOptions {
    TensorOptions dtype(ScalarType) const;
};

struct Sizes {
    Sizes(std::initializer_list<int64_t>);
    Sizes(std::vector<int64_t>);
    Sizes slice(int64_t, int64_t) const;
    std::vector<int64_t> vec() const;
};

struct Device {};

struct Tensor {
    int64_t dim() const;
    int64_t ndimension() const;
    int64_t numel() const;
    int64_t nbytes() const;
    int64_t size(int64_t) const;
    Sizes sizes() const;
    Device device() const;
    bool defined() const;
    bool is_cuda() const;
    bool is_contiguous() const;
    ScalarType scalar_type() const;
    TensorOptions options() const;
    Tensor operator[](int64_t) const;
    Tensor to(TensorOptions) const;
    Tensor clamp_min(double) const;
    Tensor &fill_(double);
    Tensor &set_(const Tensor &);
    void *data_ptr() const;
    template <class T> T *data_ptr() const;
    template <class T> T item() const;
};
Tensor operator+(const Tensor &, const Tensor &);
Tensor operator+(const Tensor &, int64_t);
Tensor operator-(const Tensor &, const Tensor &);
Tensor operator-(int64_t, const Tensor &);
Tensor operator*(const Tensor &, const Tensor &);
Tensor operator/(const Tensor &, const Tensor &);
Tensor operator>(const Tensor &, int64_t);

struct PhiloxCudaState {};
struct CUDAGeneratorImpl {
    std::mutex mutex_;
    PhiloxCudaState philox_cuda_state(uint64_t);
};
template <class T, class Given, class Default> T *get_generator_or_default(Given, Default);

namespace cuda {
struct CUDAStream {
    cudaStream_t stream() const;
    operator cudaStream_t() const;
};
CUDAStream getCurrentCUDAStream();
struct OptionalCUDAGuard {
    explicit OptionalCUDAGuard(Device);
};
namespace detail {
int getDefaultCUDAGenerator();
}
namespace philox {
__device__ inline std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState)
{
    __trap();
    return {};
}
} // namespace philox
} // namespace cuda
} // namespace at

namespace torch {
using namespace at;
inline constexpr ScalarType kFloat32 = kFloat;
Tensor empty(Sizes, TensorOptions);
Tensor zeros(Sizes, TensorOptions);
Tensor full(Sizes, double, TensorOptions);
Tensor empty_like(Tensor);
Tensor cumsum(Tensor, int64_t, ScalarType);
} // namespace torch

namespace c10::cuda::CUDACachingAllocator {
struct Allocation {
    void *get() const;
};
struct Allocator {
    Allocation allocate(size_t);
};
Allocator *get();
} // namespace c10::cuda::CUDACachingAllocator

at::Device device_of(const at::Tensor &);

template <class T> __device__ void gpuAtomicAdd(T *address, T value) { atomicAdd(address, value); }

// In place of a statement, whether or not a semicolon follows.
#define TORCH_CHECK(...)                                                                                                \
    {                                                                                                                   \
    }
#define AT_ERROR(...)                                                                                                   \
    {                                                                                                                   \
    }
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...)                                                                     \
    {                                                                                                                   \
        using scalar_t = float;                                                                                         \
        __VA_ARGS__();                                                                                                  \
    }
