// Kernels with static and dynamic shared memory, also in templates and device functions.
#include <cuda_runtime.h>

template <typename T, int N>
__device__ T rotate(T value) {
    __shared__ T line[N];  // one array for each instantiation
    line[threadIdx.x] = value;
    __syncthreads();
    T result = line[(threadIdx.x + 1) % N];
    __syncthreads();
    return result;
}

__global__ void arrays_kernel(float* out, int n) {
    __shared__ float tile[8][33], flags;
    __shared__ __align__(16) int numbers[3];
    extern __shared__ float dynamic[];
    const int t = threadIdx.x;
    tile[t / 32][t % 32] = t;
    if (t == 0) flags = 5.0f;
    if (t < 3) numbers[t] = t * 100;
    for (int i = t; i < n; i += blockDim.x) dynamic[i] = i;
    __syncthreads();
    const float turned = rotate<float, 256>(t * 1.0f);
    const int turned_int = rotate<int, 256>(t * 2);
    out[t] = tile[t / 32][31 - t % 32] + flags + numbers[t % 3] + dynamic[n - 1 - t % n] + turned + turned_int;
}

extern "C" void arrays(float* out, int n, cudaStream_t stream) {
    arrays_kernel<<<1, 256, n * sizeof(float), stream>>>(out, n);
}

// Every block must get memory without contents of earlier blocks.
__global__ void fresh_kernel(int* out) {
    __shared__ int number;
    extern __shared__ int more[];
    out[2 * blockIdx.x] = number;
    out[2 * blockIdx.x + 1] = more[0];
    number = more[0] = 7;
}

extern "C" void fresh(int* out, int blocks, cudaStream_t stream) { fresh_kernel<<<blocks, 1, 4, stream>>>(out); }

// Writes the addresses of arrays, to test their alignment and the shared window.
__global__ void addresses_kernel(int* out) {
    __shared__ char a;
    __shared__ double b;
    __shared__ __align__(128) float c[3];
    extern __shared__ __align__(16) unsigned char d[];
    out[0] = (size_t)&a % 1;
    out[1] = (size_t)&b % 8;
    out[2] = (size_t)c % 128;
    out[3] = (size_t)d % 16;
    out[4] = __isShared(&a) && __isShared(c) && __isShared(d) && !__isShared(out) && __isGlobal(out);
    const size_t window = __cvta_generic_to_shared(c);
    out[5] = window > 0 && window < (1u << 20) && __cvta_shared_to_generic(window) == (void*)c;
}

extern "C" void addresses(int* out, cudaStream_t stream) { addresses_kernel<<<1, 1, 64, stream>>>(out); }

template <int Bytes>
__global__ void big_static(int* out) {
    __shared__ char big[Bytes];
    big[threadIdx.x] = 1;
    out[0] = big[threadIdx.x];
}

// Launches at and beyond limits of shared memory: static, static plus dynamic, and the opt-in limit.
extern "C" void static_limit(int* out, bool over, cudaStream_t stream) {
    if (over)
        big_static<48 * 1024 + 16><<<1, 1, 0, stream>>>(out);
    else
        big_static<48 * 1024><<<1, 1, 0, stream>>>(out);
}

extern "C" void both_kinds(int* out, int dynamic, cudaStream_t stream) {
    big_static<40 * 1024><<<1, 1, dynamic, stream>>>(out);
}

__global__ void big_dynamic(int* out, int bytes) {
    extern __shared__ char buffer[];
    buffer[bytes - 1] = 3;
    out[0] = buffer[bytes - 1];
}

extern "C" void dynamic_limit(int* out, int bytes, int allowed, cudaStream_t stream) {
    if (allowed >= 0) {
        cudaError_t error = cudaFuncSetAttribute(big_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, allowed);
        if (error) return;
    }
    big_dynamic<<<1, 1, bytes, stream>>>(out, bytes);
}
