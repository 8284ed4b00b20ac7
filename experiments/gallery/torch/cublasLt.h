// SPDX-License-Identifier: MIT OR Apache-2.0
// In place of the header of cuBLAS, where kernels include it and use nothing of it.
#pragma once
