// SPDX-License-Identifier: MIT OR Apache-2.0
// The header of flashinfer with kernels that merge parts of an attention, which are templates.
#include <flashinfer/attention/cascade.cuh>
