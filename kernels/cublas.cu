// Functions of cuBLAS, as host functions. The handle, with its workspace, is made before anything is timed.

#include <cublas_v2.h>

namespace {

int prepare(void **state)
{
    cublasHandle_t handle;
    const cublasStatus_t status = cublasCreate(&handle);
    if (status == CUBLAS_STATUS_SUCCESS) {
        *state = handle;
    }
    return status;
}

void release(void *state)
{
    cublasDestroy(static_cast<cublasHandle_t>(state));
}

const char *text(int code)
{
    return cublasGetStatusString(static_cast<cublasStatus_t>(code));
}

template <typename T>
T *array(void *const *args, int index)
{
    return *static_cast<T *const *>(args[index]);
}

int size(void *const *args, int index)
{
    return *static_cast<const int *>(args[index]);
}

} // namespace

// Two arrays of doubles: (i32 n, real_in, imag_in, real_out, imag_out).
extern "C" int cublas_copy(cudaStream_t stream, void *const *args, void *state)
{
    const auto handle = static_cast<cublasHandle_t>(state);
    cublasStatus_t status = cublasSetStream(handle, stream);
    for (int part = 1; part <= 2 && status == CUBLAS_STATUS_SUCCESS; ++part) {
        status = cublasDcopy(handle, size(args, 0), array<const double>(args, part), 1, array<double>(args, part + 2), 1);
    }
    return status;
}

extern "C" int cublas_copy_prepare(cudaStream_t, void *const *, void **state)
{
    return prepare(state);
}

extern "C" void cublas_copy_release(void *state)
{
    release(state);
}

extern "C" const char *cublas_copy_error(int code)
{
    return text(code);
}

// C = A·B with A column-major and B and C row-major: (a, b, c, i32 m, i32 n, i32 k). To cuBLAS, all of whose matrices are
// column-major, B and C are their transposes, and the product is that of Bᵀ and Aᵀ.
extern "C" int cublas_sgemm(cudaStream_t stream, void *const *args, void *state)
{
    const auto handle = static_cast<cublasHandle_t>(state);
    const int m = size(args, 3);
    const int n = size(args, 4);
    const int k = size(args, 5);
    const float one = 1;
    const float zero = 0;
    const cublasStatus_t status = cublasSetStream(handle, stream);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, m, k, &one, array<const float>(args, 1), n,
                       array<const float>(args, 0), m, &zero, array<float>(args, 2), n);
}

extern "C" int cublas_sgemm_prepare(cudaStream_t, void *const *, void **state)
{
    return prepare(state);
}

extern "C" void cublas_sgemm_release(void *state)
{
    release(state);
}

extern "C" const char *cublas_sgemm_error(int code)
{
    return text(code);
}
