k.cu
__global__ void k() {}
const char *s = 'unclosed �