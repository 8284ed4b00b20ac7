// cuBLAS is a library of the host. Its header includes these, from which published kernels get the 16-bit floats.
#pragma once
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
