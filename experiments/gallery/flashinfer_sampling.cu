// SPDX-License-Identifier: MIT OR Apache-2.0
// The header of flashinfer with kernels for sampling, which are templates.
#include <flashinfer/sampling.cuh>
