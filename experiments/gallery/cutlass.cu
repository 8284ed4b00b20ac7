// SPDX-License-Identifier: MIT OR Apache-2.0
// The headers of CUTLASS with kernels that are templates.
#include <cutlass/util/device_groupnorm.h>
#include <cutlass/util/device_layernorm.h>
#include <cutlass/util/device_nchw_to_nhwc.h>
#include <cutlass/util/device_nhwc_pooling.h>
