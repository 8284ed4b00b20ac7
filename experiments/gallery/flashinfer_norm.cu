// SPDX-License-Identifier: MIT OR Apache-2.0
// The header of flashinfer with normalisations, whose kernels are templates.
#include <flashinfer/norm.cuh>
