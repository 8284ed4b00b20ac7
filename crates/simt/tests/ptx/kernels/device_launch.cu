// Launches from the device, for the simulator's tests.
// device_launch.ptx is this file compiled by NVRTC 13.0.88 for compute_90 with -lineinfo and -rdc=true.

// Numbers that the grids of a launch log, in the order in which the grids run.
struct Log {
    int count;
    int entries[63];
};

__device__ void say(Log *log, int what) { log->entries[atomicAdd(&log->count, 1)] = what; }

extern "C" __global__ void speak(Log *log, int what) { if (threadIdx.x == 0) say(log, what); }

// Logs a number and launches one child into the default stream and one into the tail stream.
extern "C" __global__ void family(Log *log, int what) {
    say(log, what);
    speak<<<1, 1, 0, cudaStreamTailLaunch>>>(log, what + 2);
    speak<<<1, 1>>>(log, what + 1);
}

extern "C" __global__ void order(Log *log) {
    family<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 30);
    family<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 40);
    family<<<1, 1>>>(log, 10);
    speak<<<1, 32>>>(log, 13);
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEvent_t done;
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    speak<<<1, 1, 0, a>>>(log, 20);
    cudaEventRecord(done, a);
    cudaStreamWaitEvent(b, done, 0);
    speak<<<1, 1, 0, b>>>(log, 21);
    speak<<<1, 1, 0, cudaStreamFireAndForget>>>(log, 22);
    cudaEventDestroy(done);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    say(log, 1);
}

extern "C" __global__ void scale(int *data, int factor, int addend) {
    data[threadIdx.x] = data[threadIdx.x] * factor + addend;
}

// A child sees what its parent has written, and the next child sees what that child has written.
extern "C" __global__ void relay(int *data) {
    data[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        scale<<<1, 64>>>(data, 10, 1);
        scale<<<1, 64>>>(data, 2, 5);
    }
}

// Each grid launches the next one, until a launch is refused.
extern "C" __global__ void descend(int *reached, int *code, int depth) {
    *reached = depth;
    descend<<<1, 1>>>(reached, code, depth + 1);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) *code = error;
}

extern "C" __global__ void descend_by_tail(int *reached, int *code, int depth) {
    *reached = depth;
    if (depth == 40) return;
    descend_by_tail<<<1, 1, 0, cudaStreamTailLaunch>>>(reached, code, depth + 1);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) *code = error;
}

extern "C" __global__ void nothing() {}

// Launches until a launch is refused. Outputs the number of accepted launches, and the error code.
extern "C" __global__ void flood(int *out, int most) {
    int launched = 0;
    cudaError_t error = cudaSuccess;
    while (launched < most) {
        nothing<<<1, 1, 0, cudaStreamTailLaunch>>>();
        error = cudaGetLastError();
        if (error != cudaSuccess) break;
        launched++;
    }
    out[0] = launched;
    out[1] = error;
}

extern "C" __global__ void __launch_bounds__(64) bounded() {}

// Error codes of launches that exceed a limit, and of calls with an invalid argument.
extern "C" __global__ void refused(int *codes) {
    int at = 0;
    nothing<<<1, 2048>>>();
    codes[at++] = cudaGetLastError();
    nothing<<<1, 0>>>();
    codes[at++] = cudaGetLastError();
    nothing<<<0, 1>>>();
    codes[at++] = cudaGetLastError();
    nothing<<<dim3(1, 70000), 1>>>();
    codes[at++] = cudaGetLastError();
    nothing<<<1, dim3(1, 1, 128)>>>();
    codes[at++] = cudaGetLastError();
    nothing<<<1, 1, 200000>>>();
    codes[at++] = cudaGetLastError();
    bounded<<<1, 128>>>();
    codes[at++] = cudaGetLastError();
    cudaStream_t stream = 0;
    codes[at++] = cudaStreamCreateWithFlags(&stream, cudaStreamDefault);
    cudaEvent_t event;
    codes[at++] = cudaEventCreateWithFlags(&event, cudaEventDefault);
    codes[at++] = cudaMemcpyAsync(codes, codes + 32, 4, cudaMemcpyHostToDevice, 0);
    int value;
    codes[at++] = cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0);
    cudaGetLastError();
    codes[at++] = cudaGetLastError();
    nothing<<<1, 2048>>>();
    codes[at++] = cudaPeekAtLastError();
    codes[at++] = cudaGetLastError();
    codes[at++] = cudaGetLastError();
}

// A program from a book on CUDA: each level has half as many threads as the one before.
extern "C" __global__ void hello(int size, int depth) {
    int tid = threadIdx.x;
    printf("Recursion=%d: Hello World from thread %d block %d\n", depth, tid, blockIdx.x);
    if (size == 1) return;
    int threads = size >> 1;
    if (tid == 0 && threads > 0) {
        hello<<<1, threads>>>(threads, ++depth);
        printf("-------> nested execution depth: %d\n", depth);
    }
}

extern "C" __global__ void overrun(int *data, int n) { data[n + threadIdx.x] = 1; }

extern "C" __global__ void careless(int *data, int n) {
    if (threadIdx.x == 0) overrun<<<1, 2>>>(data, n);
}

// Every thread launches a grid whose threads each add a number to the sum.
extern "C" __global__ void add(float *sum, float what) { atomicAdd(sum, what); }

extern "C" __global__ void spread(float *sum, int depth) {
    add<<<2, 2>>>(sum, 1.0f / (1.0f + blockIdx.x * blockDim.x + threadIdx.x));
    if (depth > 0 && threadIdx.x == 0) spread<<<2, 4>>>(sum, depth - 1);
}

// Copies and fills parts of 24 ints, which are three rows of eight.
extern "C" __global__ void transfers(int *to, int *from) {
    cudaMemsetAsync(to, 0xff, 24 * sizeof(int), 0);
    cudaMemcpyAsync(to, from, 2 * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    cudaMemcpy2DAsync(to + 9, 8 * sizeof(int), from + 8, 8 * sizeof(int), 3 * sizeof(int), 2, cudaMemcpyDeviceToDevice, 0);
    cudaMemset2DAsync(to + 14, 8 * sizeof(int), 0, 2 * sizeof(int), 2, 0);
    cudaMemcpy3DParms p = {};
    p.srcPtr = cudaPitchedPtr{from, 4 * sizeof(int), 4 * sizeof(int), 2};
    p.srcPos = cudaPos{4, 1, 0};
    p.dstPtr = cudaPitchedPtr{to + 2, 4, 4, 1};
    p.extent = cudaExtent{4, 1, 3};
    p.kind = cudaMemcpyDeviceToDevice;
    cudaMemcpy3DAsync(&p, 0);
    cudaMemset3DAsync(cudaPitchedPtr{to + 6, 4, 4, 1}, 1, cudaExtent{4, 1, 2}, 0);
}

extern "C" __global__ void queries(int *out, int *text) {
    int *at = out;
    cudaDeviceGetAttribute(at++, cudaDevAttrMultiProcessorCount, 0);
    cudaDeviceGetAttribute(at++, cudaDevAttrMaxThreadsPerMultiProcessor, 0);
    cudaGetDevice(at++);
    cudaGetDeviceCount(at++);
    cudaRuntimeGetVersion(at++);
    cudaFuncAttributes attributes;
    cudaFuncGetAttributes(&attributes, (const void *)bounded);
    *at++ = attributes.maxThreadsPerBlock;
    *at++ = (int)attributes.sharedSizeBytes;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(at++, (const void *)nothing, 512, 0);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(at++, (const void *)nothing, 32, 100 << 10);
    size_t limit = 0;
    cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount);
    *at++ = (int)limit;
    int *heap = 0;
    *at++ = cudaMalloc((void **)&heap, 64);
    heap[15] = 7;
    *at++ = heap[15];
    *at++ = cudaFree(heap);
    const char *name = cudaGetErrorName(cudaErrorInvalidConfiguration);
    for (int k = 0; k < 8; k++) text[k] = name[k];
}

// Launches through the interface that PTX programs use, without the compiler's help.
extern "C" __global__ void by_hand(int *data) {
    void *parameters = cudaGetParameterBuffer(8, 16);
    *(int **)parameters = data;
    ((int *)parameters)[2] = 3;
    ((int *)parameters)[3] = 4;
    data[63] = cudaLaunchDevice((void *)scale, parameters, dim3(1), dim3(32), 0, 0);
    data[62] = cudaLaunchDevice((void *)nothing, 0, dim3(1), dim3(1), 0, 0);
}

// Only some lanes of a warp launch.
extern "C" __global__ void lanes(Log *log) {
    if (threadIdx.x % 3 == 1) speak<<<1, 1>>>(log, threadIdx.x);
}
