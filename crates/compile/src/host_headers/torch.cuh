#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_HOST_DEVICE __host__ __device__
#define C10_RESTRICT __restrict__
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_WARP_SIZE 32
#define CUDA_KERNEL_ASSERT(condition)
#define CUDA_1D_KERNEL_LOOP(i, n) \
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n); i += (int64_t)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_1D_KERNEL_LOOP(i, n)
namespace c10 {
using Half = __half;
using BFloat16 = __nv_bfloat16;
}
namespace at {
using c10::BFloat16;
using c10::Half;
struct Tensor;
struct TensorList;
struct TensorOptions;
enum class ScalarType : int8_t;
template <typename T> struct numeric_limits {
  static __host__ __device__ constexpr T lowest() { return std::numeric_limits<T>::lowest(); }
  static __host__ __device__ constexpr T max() { return std::numeric_limits<T>::max(); }
  static __host__ __device__ constexpr T lower_bound() { return -std::numeric_limits<T>::infinity(); }
  static __host__ __device__ constexpr T upper_bound() { return std::numeric_limits<T>::infinity(); }
};
template <typename T, bool is_cuda> struct AccumulateType { using type = T; };
template <> struct AccumulateType<Half, true> { using type = float; };
template <> struct AccumulateType<BFloat16, true> { using type = float; };
template <typename T, bool is_cuda> using acc_type = typename AccumulateType<T, is_cuda>::type;
template <typename T> using opmath_type = acc_type<T, true>;
}
namespace torch = at;
