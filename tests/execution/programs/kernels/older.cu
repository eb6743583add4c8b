// Idioms of older CUDA programs that were correct on GPUs of their time, so the checks must report nothing.
#include <cstdio>

__shared__ int counts[4];
__device__ __shared__ unsigned marks[32];

__device__ void add(int i) { atomicAdd(&counts[i % 4], 1); }

__global__ void count(int* out) {
    if (threadIdx.x < 4) counts[threadIdx.x] = 0;
    marks[threadIdx.x] = 1;
    __syncthreads();
    add(static_cast<int>(threadIdx.x));
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = counts[threadIdx.x] + static_cast<int>(marks[threadIdx.x]);
}

__global__ void sum_of_a_warp(int* value) {
    int sum = value[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down(sum, step);
    value[threadIdx.x] = __shfl(sum, 0) + __any(threadIdx.x == 3) + __popc(__ballot(threadIdx.x < 2));
}

__global__ void packed(unsigned* out, double* rounded, int none) {
    out[5] = (5u << 32 - none) + (~0u >> 32 + none) + (1 << none + 32);  // 0: all bits are shifted out
    out[6] = static_cast<unsigned>(-8 >> none + 40);                     // -1: the sign bit is shifted in
    out[0] = __vabsss2(0x80007fffu);
    out[1] = __vabsss4(0x80ff017fu);
    out[2] = __vsadu2(0x00050003u, 0x00010009u);
    out[3] = __vsads2(0xffff0001u, 0x00010003u);
    out[4] = __vsetges2(0xffff0001u, 0x00000001u);
    rounded[0] = __ll2double_rd((1ll << 53) + 1) - 9007199254740992.0;
    rounded[1] = __ll2double_ru((1ll << 53) + 1) - 9007199254740992.0;
    rounded[2] = __ll2double_rz(-(1ll << 53) - 1) + 9007199254740992.0;
    rounded[3] = __ull2double_rz(~0ull) - 18446744073709551616.0;
}

__global__ void least(double* address) {
    double value = -static_cast<double>(threadIdx.x + blockIdx.x);
    unsigned long long seen = __double_as_longlong(*address);  // may be outdated, which atomicCAS detects
    while (value < __longlong_as_double(static_cast<long long>(seen))) {
        unsigned long long old = seen;
        seen = atomicCAS((unsigned long long*)address, old, __double_as_longlong(value));
        if (seen == old) break;
    }
}

int main() {
    int *device, *pinned, host[32];
    cudaMalloc(&device, sizeof host);
    cudaMallocHost(&pinned, sizeof host);
    for (int i = 0; i < 32; ++i) pinned[i] = i;
    count<<<1, 32>>>(device);
    cudaThreadSynchronize();
    cudaMemcpy(host, device, 16, cudaMemcpyDeviceToHost);
    for (int blockIdx = 0; blockIdx < 4; ++blockIdx) printf("%d ", host[blockIdx]);

    cudaMemcpyPeer(device, 0, device, 0, 4);
    cudaMemcpy(device, pinned, sizeof host, cudaMemcpyHostToDevice);
    pinned[0] = 5;  // cudaMemcpy has finished its copy: it waits even if the memory is pinned
    sum_of_a_warp<<<1, 32>>>(device);
    cudaMemcpy(pinned, device, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d\n", pinned[31]);

    unsigned* packs;
    double* rounded;
    cudaMallocManaged(&packs, 7 * sizeof(unsigned));
    cudaMallocManaged(&rounded, 4 * sizeof(double));
    packed<<<1, 1>>>(packs, rounded, 0);
    cudaDeviceSynchronize();
    printf("%x %x %u %u %x %u %x\n", packs[0], packs[1], packs[2], packs[3], packs[4], packs[5], packs[6]);
    printf("%g %g %g %g\n", rounded[0], rounded[1], rounded[2], rounded[3]);

    least<<<2, 32>>>(rounded);
    cudaDeviceSynchronize();
    printf("%g\n", rounded[0]);

    int* of_host = nullptr;
    bool reached = cudaHostGetDevicePointer(&of_host, host, 0) == cudaSuccess;
    reached = reached || cudaHostGetDevicePointer(&of_host, pinned, 0) != cudaSuccess || of_host != pinned;
    cudaFree(device);
    cudaFree(packs);
    cudaFree(rounded);
    cudaFreeHost(pinned);
    return reached;
}
