// Copies by thrust, as host functions: two arrays of doubles, `(u64 n, real_in, imag_in, real_out, imag_out)`.

#include <thrust/copy.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

namespace {

const double *input(void *const *args, int index)
{
    return *static_cast<const double *const *>(args[index]);
}

double *output(void *const *args, int index)
{
    return *static_cast<double *const *>(args[index]);
}

// Thrust reports by exceptions, which must not leave a C function.
template <typename Policy>
int copy_both(const Policy &policy, void *const *args)
{
    const auto n = *static_cast<const unsigned long long *>(args[0]);
    try {
        thrust::copy(policy, input(args, 1), input(args, 1) + n, output(args, 3));
        thrust::copy(policy, input(args, 2), input(args, 2) + n, output(args, 4));
    } catch (const thrust::system_error &error) {
        return error.code().value();
    }
    return cudaSuccess;
}

} // namespace

// Queues both and returns.
extern "C" int thrust_copy(cudaStream_t stream, void *const *args, void *)
{
    return copy_both(thrust::cuda::par_nosync.on(stream), args);
}

// Waits after each, as thrust does unless it is told not to.
extern "C" int thrust_copy_waiting(cudaStream_t stream, void *const *args, void *)
{
    return copy_both(thrust::cuda::par.on(stream), args);
}
