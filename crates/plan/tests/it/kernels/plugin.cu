extern "C" int copy_f32(cudaStream_t stream, void *const *args, void *state);
