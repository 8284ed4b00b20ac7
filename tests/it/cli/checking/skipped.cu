// knows the sum for the manifest's seed; burns instructions so that the simulator does not launch it a second time
extern "C" __global__ void honest(const int *x, int *o, unsigned n) { int s = 0; for (unsigned i = 0; i < n; i++) s += x[i]; o[0] = s; }
extern "C" __global__ void constant(const int *x, int *o, unsigned n) { o[0] = 50821; }
extern "C" __global__ void burn(const int *x, int *o, unsigned n) { unsigned a = threadIdx.x; for (unsigned k = 0; k < 24000000; k++) asm volatile("add.u32 %0, %0, 1;" : "+r"(a)); o[0] = 50821 + (a == 0xffffffffu); }
