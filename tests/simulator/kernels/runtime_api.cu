// Runtime calls in launchers. Each launcher writes its results to `out`; 1 means that a call did what CUDA does.
#include <cstring>

#include <cuda_runtime.h>

__constant__ float table[4];
__device__ int counters[3] = {5, 6, 7};

__global__ void scale_kernel(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= table[i % 4];
}

// Tests scratch memory, copies in all directions, memset and symbols.
extern "C" void memory(float* x, int* out, int n, cudaStream_t stream) {
    float host[4] = {1, 2, 3, 4}, back[4] = {};
    float *scratch = nullptr, *more = nullptr;
    out[0] = cudaMemcpyToSymbolAsync(table, host, sizeof host, 0, cudaMemcpyHostToDevice, stream) == cudaSuccess;
    out[1] = cudaMallocAsync(&scratch, n * sizeof(float), stream) == cudaSuccess && scratch;
    out[2] = cudaMemcpyAsync(scratch, x, n * sizeof(float), cudaMemcpyDeviceToDevice, stream) == cudaSuccess;
    scale_kernel<<<(n + 127) / 128, 128, 0, stream>>>(scratch, n);
    out[3] = cudaMemcpy(x, scratch, n * sizeof(float), cudaMemcpyDefault) == cudaSuccess;
    out[4] = cudaFreeAsync(scratch, stream) == cudaSuccess;
    out[5] = cudaMemcpyFromSymbol(back, table, 8, 8) == cudaSuccess && back[0] == 3 && back[1] == 4;
    int* address = nullptr;
    size_t bytes = 0;
    out[6] = cudaGetSymbolAddress((void**)&address, counters) == cudaSuccess &&
             address != counters;  // not the host variable's address
    out[7] = cudaGetSymbolSize(&bytes, counters) == cudaSuccess && bytes == 12;
    int read[3];
    out[8] = cudaMemcpy(read, address, sizeof read, cudaMemcpyDeviceToHost) == cudaSuccess && read[2] == 7;
    out[9] = cudaMalloc(&more, 0) == cudaSuccess && more == nullptr && cudaFree(nullptr) == cudaSuccess;
    out[10] = cudaMalloc((void**)&more, 1000) == cudaSuccess && cudaMemset(more, 0x11, 1000) == cudaSuccess;
    unsigned word = 0;
    cudaMemcpy(&word, (char*)more + 996, 4, cudaMemcpyDeviceToHost);
    out[11] = word == 0x11111111;
    size_t pitch = 0;
    char* rows = nullptr;
    out[12] = cudaMallocPitch(&rows, &pitch, 100, 3) == cudaSuccess && pitch >= 100 && pitch % 256 == 0;
    char picture[3][10], copy[3][10] = {};
    for (int i = 0; i < 30; ++i) picture[i / 10][i % 10] = (char)i;
    cudaMemcpy2D(rows, pitch, picture, 10, 10, 3, cudaMemcpyHostToDevice);
    cudaMemcpy2DAsync(copy, 10, rows, pitch, 10, 3, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    out[13] = memcmp(picture, copy, sizeof copy) == 0;
    out[14] = cudaFree(rows) == cudaSuccess && cudaFree(more) == cudaSuccess && cudaGetLastError() == cudaSuccess;
    float *pinned = nullptr, *managed = nullptr;
    out[15] = cudaMallocHost(&pinned, 64) == cudaSuccess && cudaMallocManaged(&managed, 64) == cudaSuccess;
    pinned[3] = 2.5f;
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    if (cudaMemPrefetchAsync(managed, 64, here, 0, stream)) return;
    cudaMemcpy(managed, pinned, 64, cudaMemcpyHostToDevice);
    out[16] = managed[3] == 2.5f && cudaFreeHost(pinned) == cudaSuccess && cudaFree(managed) == cudaSuccess;
}

// Tests calls that fail, and that the error remains until it is queried.
extern "C" void failures(float* x, int* out, int n, cudaStream_t stream) {
    float host[8];
    float* scratch = nullptr;
    int i = 0;
    out[i++] = cudaMemcpy(host, host, 4, cudaMemcpyDeviceToHost);
    out[i++] = cudaPeekAtLastError();
    out[i++] = cudaGetLastError();
    out[i++] = cudaGetLastError();
    out[i++] = cudaMemcpy(x, host, n * sizeof(float) + 4, cudaMemcpyHostToDevice);
    out[i++] = cudaMemset(x + n, 0, 4);
    out[i++] = cudaFree(host);
    cudaMalloc(&scratch, 100);
    cudaFree(scratch);
    out[i++] = cudaFree(scratch);
    out[i++] = cudaMemcpy(scratch, host, 4, cudaMemcpyHostToDevice);
    out[i++] = cudaMalloc(&scratch, (size_t)1 << 60);
    out[i++] = scratch == nullptr;
    out[i++] = cudaMemcpyToSymbol(table, host, 20);
    out[i++] = cudaSetDevice(1);
    out[i++] = strcmp(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
    out[i++] = strcmp(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration");
    cudaStream_t gone;
    cudaEvent_t event;
    cudaStreamCreate(&gone);
    cudaStreamDestroy(gone);
    cudaEventCreate(&event);
    cudaEventRecord(event, stream);
    out[i++] = cudaStreamWaitEvent(gone, event, 0);
    cudaEventDestroy(event);
    out[i++] = cudaStreamWaitEvent(stream, event, 0);
    cudaGetLastError();
}

__global__ void tiny_kernel(int* out) { *out = 1; }

template <int N>
__global__ void shared_kernel(int* out) {
    __shared__ int big[N];
    big[threadIdx.x] = 1;
    out[0] = big[threadIdx.x];
}

// Tests queries of streams, events, properties, attributes and occupancy.
extern "C" void queries(int* out, cudaStream_t stream) {
    int i = 0;
    cudaStream_t mine;
    cudaEvent_t start, end;
    out[i++] = cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) == cudaSuccess;
    out[i++] = cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess;
    cudaEventRecord(start, mine);
    tiny_kernel<<<1, 1, 0, mine>>>(out + 30);
    cudaEventRecord(end, mine);
    cudaStreamWaitEvent(stream, end, 0);
    out[i++] = cudaEventSynchronize(end) == cudaSuccess && cudaStreamSynchronize(mine) == cudaSuccess;
    float ms = -1;
    out[i++] = cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 0 && ms < 10000;
    out[i++] = cudaEventDestroy(start) == cudaSuccess && cudaEventDestroy(end) == cudaSuccess &&
               cudaStreamDestroy(mine) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess;
    cudaDeviceProp properties;
    int device = -1, value = 0, count = 0;
    out[i++] = cudaGetDeviceCount(&count) == cudaSuccess && count == 1 && cudaGetDevice(&device) == cudaSuccess;
    out[i++] = cudaGetDeviceProperties(&properties, device) == cudaSuccess && properties.major == 9 &&
               properties.warpSize == 32 && properties.sharedMemPerBlockOptin == 227 * 1024;
    out[i++] = cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess &&
               value == properties.multiProcessorCount;
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tiny_kernel, 256, 0);
    out[i++] = blocks == 8;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tiny_kernel, 32, 0);
    out[i++] = blocks == 32;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tiny_kernel, 128, 40000);
    out[i++] = blocks == 5;
    int grid = 0, block = 0;
    out[i++] = cudaOccupancyMaxPotentialBlockSize(&grid, &block, tiny_kernel) == cudaSuccess && block == 1024;
    cudaFuncAttributes attributes;
    shared_kernel<100><<<1, 1>>>(out + 31);
    out[i++] = cudaFuncGetAttributes(&attributes, shared_kernel<100>) == cudaSuccess &&
               attributes.sharedSizeBytes == 400 && attributes.maxThreadsPerBlock == 1024;
    size_t free_bytes = 0, total = 0;
    out[i++] = cudaMemGetInfo(&free_bytes, &total) == cudaSuccess && free_bytes <= total && total > 0;
    cudaPointerAttributes pointer;
    out[i++] = cudaPointerGetAttributes(&pointer, out) == cudaSuccess && pointer.type == cudaMemoryTypeDevice;
}

// Kernels that are launched by their addresses, with pointers to the arguments, or through a function pointer.
__global__ void saxpy_kernel(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T, int N>
__global__ void add_kernel(T* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += N;
}

extern "C" void by_address(float a, const float* x, float* y, int n, cudaStream_t stream) {
    void* arguments[] = {&a, &x, &y, &n};
    cudaLaunchKernel((void*)saxpy_kernel, dim3((n + 31) / 32), dim3(32), arguments, 0, stream);
    void* others[] = {&y, &n};
    cudaLaunchKernel(add_kernel<float, 3>, (n + 31) / 32, 32, others);
    auto chosen = n > 5 ? add_kernel<float, 10> : add_kernel<float, 20>;
    chosen<<<(n + 31) / 32, 32, 0, stream>>>(y, n);
}

// Clocks increase, also while a thread waits.
__global__ void clocks_kernel(int* out) {
    const long long start = clock64();
    const clock_t coarse = clock();
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(before));
    while (clock64() - start < 100000) __nanosleep(100);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(after));
    out[threadIdx.x] = clock64() > start && clock() > coarse && after > before;
}

extern "C" void clocks(int* out, cudaStream_t stream) { clocks_kernel<<<1, 64, 0, stream>>>(out); }

// Tests launches that CUDA refuses. Each one sets an error, which cudaGetLastError clears.
extern "C" void failing_launches(int* out, cudaStream_t stream) {
    int i = 0;
    tiny_kernel<<<1, 2048, 0, stream>>>(out + 30);
    out[i++] = cudaPeekAtLastError();
    out[i++] = cudaGetLastError();
    tiny_kernel<<<0, 32, 0, stream>>>(out + 30);
    out[i++] = cudaGetLastError();
    tiny_kernel<<<1, 32, 300 * 1024, stream>>>(out + 30);
    out[i++] = cudaGetLastError();
    out[i++] = cudaGetLastError();
    tiny_kernel<<<1, 32, 0, stream>>>(out + 30);
    out[i++] = cudaDeviceSynchronize();
    tiny_kernel<<<1, 2048, 0, stream>>>(out + 30);  // not queried, so the launcher's call must return this error
}
