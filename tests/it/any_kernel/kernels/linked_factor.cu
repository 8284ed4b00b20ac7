__device__ float factor = 2.0f;
