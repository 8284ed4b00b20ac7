// Found only through `include_paths`.
__global__ void mine(float* sum, const float* f32) {}
