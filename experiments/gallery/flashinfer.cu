// SPDX-License-Identifier: MIT OR Apache-2.0
// The headers of flashinfer whose kernels are templates, with an activation for them.
#include <flashinfer/activation.cuh>

__device__ float silu(const float &x) { return x / (1 + expf(-x)); }
