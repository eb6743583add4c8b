// __device__ variables of 8 elements, each followed by another variable. Element 8 belongs to no variable.
// Every launcher runs n threads; thread i touches element i.
#include <cuda_runtime.h>

extern __device__ float declared_before[8];

__device__ float zeros[8];
__device__ float initialized[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static __device__ float of_this_file[8];
__constant__ float constants[8];
__constant__ float initial_constants[] = {0, 1, 2, 3, 4, 5, 6, 7};
__device__ const float fixed[8] = {0, 1, 2, 3, 4, 5, 6, 7};
__device__ float one[8], other[8], last[128];
__device__ float rows[2][4];
__device__ float4 vectors[2];
namespace inner {
__device__ float in_a_namespace[8] = {1};
}
__device__ float declared_before[8];
struct Shape {
    int width, height;
};
__constant__ Shape shapes[4] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
__device__ float written[8];
__device__ float neighbor[8];
__managed__ int shared_with_the_host;
__device__ int taken;

// Reads through a pointer, because the compiler's own bounds check would catch a wrong index of an array variable.
template <typename T>
__device__ __attribute__((noinline)) T element(const T* values, int i) {
    return values[i];
}

template <typename Load>
__global__ void read(float* out, Load load) {
    out[threadIdx.x] = load(threadIdx.x);
}

#define READ(VALUES) read<<<1, n, 0, stream>>>(out, [] __device__(int i) -> float { return element(VALUES, i); })

extern "C" void read_zeros(const float* x, float* out, int n, cudaStream_t stream) { READ(zeros); }
extern "C" void read_initialized(const float* x, float* out, int n, cudaStream_t stream) { READ(initialized); }
extern "C" void read_of_this_file(const float* x, float* out, int n, cudaStream_t stream) { READ(of_this_file); }
extern "C" void read_constants(const float* x, float* out, int n, cudaStream_t stream) { READ(constants); }
extern "C" void read_initial_constants(const float* x, float* out, int n, cudaStream_t stream) {
    READ(initial_constants);
}
extern "C" void read_fixed(const float* x, float* out, int n, cudaStream_t stream) { READ(fixed); }
extern "C" void read_one(const float* x, float* out, int n, cudaStream_t stream) { READ(one); }
extern "C" void read_other(const float* x, float* out, int n, cudaStream_t stream) { READ(other); }
extern "C" void read_rows(const float* x, float* out, int n, cudaStream_t stream) { READ(rows[0]); }
extern "C" void read_in_a_namespace(const float* x, float* out, int n, cudaStream_t stream) {
    READ(inner::in_a_namespace);
}
extern "C" void read_declared_before(const float* x, float* out, int n, cudaStream_t stream) { READ(declared_before); }
extern "C" void read_shapes(const float* x, float* out, int n, cudaStream_t stream) { READ(&shapes[0].width); }

__device__ __attribute__((noinline)) void set(float* values, int i, float value) { values[i] = value; }
__global__ void write_kernel(const float* x) { set(written, threadIdx.x, x[threadIdx.x]); }
extern "C" void write_written(const float* x, float* out, int n, cudaStream_t stream) {
    write_kernel<<<1, n, 0, stream>>>(x);
    cudaMemcpyFromSymbol(out, written, sizeof written);
}

// Checks that red zones do not change types, values and addresses of variables.
__global__ void values_kernel(float* out) {
    static_assert(sizeof(zeros) == 32 && sizeof(initial_constants) == 32 && sizeof(rows) == 32, "no padding inside");
    out[0] = initialized[3] + initial_constants[4] + fixed[5] + zeros[1] + inner::in_a_namespace[0];
    out[1] = vectors[1].w + rows[1][3] + shapes[3].height;
    out[2] = constants[2];
    out[3] = __ldcs(&last[127]);
    // Only the first of two compare-and-swaps succeeds.
    const int first = atomicCAS_block(&taken, 0, 7), second = atomicCAS_block(&taken, 0, 8);
    out[4] = 10.0f * first + second;
    shared_with_the_host += 1;
    __threadfence_system();
}
extern "C" void values(const float* x, float* out, int n, cudaStream_t stream) {
    const float host[8] = {9, 8, 7, 6, 5, 4, 3, 2};
    cudaMemcpyToSymbol(constants, host, sizeof host);
    void* address = nullptr;
    cudaGetSymbolAddress(&address, last);
    size_t bytes = 0;
    cudaGetSymbolSize(&bytes, last);
    cudaMemcpy(static_cast<float*>(address) + bytes / sizeof(float) - 1, host, sizeof(float), cudaMemcpyHostToDevice);
    shared_with_the_host = 5;
    const int zero = 0;
    cudaMemcpyToSymbol(taken, &zero, sizeof zero);
    values_kernel<<<1, 1, 0, stream>>>(out);
    cudaStreamSynchronize(stream);
    const float counted = static_cast<float>(shared_with_the_host);
    cudaMemcpy(out + 5, &counted, sizeof counted, cudaMemcpyHostToDevice);
}
