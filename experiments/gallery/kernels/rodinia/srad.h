// SPDX-License-Identifier: LicenseRef-Rodinia
// Origin: https://github.com/yuhc/gpu-rodinia/blob/9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4/cuda/srad/srad_v2/srad.h
// Commit: 9c10d3ea16ddba2ba057cc3951a9efc4c2cc18a4
// Changes: none after this header.

#define STR_SIZE 256

#ifdef RD_WG_SIZE_0_0
        #define BLOCK_SIZE RD_WG_SIZE_0_0
#elif defined(RD_WG_SIZE_0)
        #define BLOCK_SIZE RD_WG_SIZE_0
#elif defined(RD_WG_SIZE)
        #define BLOCK_SIZE RD_WG_SIZE
#else
        #define BLOCK_SIZE 16
#endif

#define GPU
#define TIMER
//#define OUTPUT

