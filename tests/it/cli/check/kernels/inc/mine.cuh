// Found through `include_paths` alone.
__global__ void mine(float* sum, const float* f32) {}
