// One use of each construct that the front end rewrites. Each launcher writes values that test_build.py checks.
#include <cuda_runtime.h>

#define BLOCK 64
#define LAUNCH(K, T, ...) K<T><<<1, BLOCK>>>(__VA_ARGS__)
#define TILE(name, n) __shared__ float name[n]

extern __shared__ float file_scope[];

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 40, others[2];

struct Pair {
    float first, second;
};

template <typename T>
struct Storage {
    struct TempStorage {
        T values[BLOCK];
    };
};

template <typename T, int N = 2>
__global__ void scale(T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= N;
}

namespace deep {
template <int A, bool B>
__global__ void add(float* x) {
    x[threadIdx.x] += B ? A : -A;
}
}  // namespace deep

template <typename T>
__global__ void shared_forms(T* out) {
    __shared__ T a[BLOCK], b;
    __shared__ __align__(128) T wide[4];
    __shared__ typename Storage<T>::TempStorage storage;
    __shared__ struct {
        T value;
        int index;
    } record;
    volatile __shared__ int flag;
    __shared__ T grid[2][BLOCK / 2];
    TILE(tile, BLOCK);
    int t = threadIdx.x;
    a[t] = T(t);
    storage.values[t] = T(2 * t);
    tile[t] = 3 * t;
    grid[t / 32][t % 32] = T(1);
    if (t == 0) {
        b = T(1000);
        record.value = T(5);
        record.index = 7;
        flag = 1;
        wide[3] = T((reinterpret_cast<size_t>(&wide[0]) & 127) == 0);
    }
    __syncthreads();
    out[t] = a[t] + storage.values[t] + T(tile[t]) + b + record.value + T(record.index) + T(flag) + grid[t % 2][t / 2] +
             wide[3];
}

__global__ void dynamic_forms(float* out) {
    extern __shared__ __align__(16) unsigned char bytes[];
    float* own = reinterpret_cast<float*>(bytes);
    own[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = file_scope[blockDim.x - 1 - threadIdx.x] + table[threadIdx.x % 4];
}

__global__ void count(int* out) {
    if (threadIdx.x == 0) {
        counter += 1;
        others[1] = counter + 1;
        out[0] = counter;
        out[1] = others[1];
    }
}

__device__ __noinline__ float twice(Pair p) { return 2 * (p.first + p.second); }

__global__ void by_value(float* out, Pair p, const float* maybe) { out[0] = maybe ? 0 : twice(p); }

template <typename T>
void launch_from_template(T* x, int n) {
    constexpr int kBlock = 32;
    const int factor = 3;
    scale<T, factor><<<(n + kBlock - 1) / kBlock, kBlock>>>(x, n);
}

extern "C" void run_scale(float* x, int n, cudaStream_t stream) {
    launch_from_template(x, n);
    scale<<<dim3((n + 31) >> 5),  // enough blocks
            dim3(32), 0, stream>>>(x, n);
    LAUNCH(scale, float, x, n);
    auto function = scale<float, (2 > 1)>;
    function<<<1, 1>>>(x, 1);
}

extern "C" void run_add(float* x, bool more, cudaStream_t stream) {
    if (more)
        deep::add<3, (4 > 3)><<<1, BLOCK, 0, stream>>>(x);
    else
        ::deep::add<3, false><<<1, BLOCK, 0, stream>>>(x);
}

extern "C" void run_shared(float* out, cudaStream_t stream) { shared_forms<<<1, BLOCK, 0, stream>>>(out); }

extern "C" void run_dynamic(float* out, cudaStream_t stream) {
    cudaFuncSetAttribute(dynamic_forms, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024);
    dynamic_forms<<<1, BLOCK, 100 * 1024, stream>>>(out);
}

extern "C" void run_count(int* out, cudaStream_t stream) { count<<<1, 32, 0, stream>>>(out); }

extern "C" void run_by_value(float* out, float first, cudaStream_t stream) {
    by_value<<<1, 1, 0, stream>>>(out, Pair{first, 2}, nullptr);
}
