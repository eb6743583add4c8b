// Each kernel has one access pattern, so that tests can compare counters with counts derived by hand.
// Comments say what the simulator must count. x and out have n floats. test_access_patterns.py adds a launcher, with one
// block of 32 threads, for each kernel that has none.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

__global__ void coalesced_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[threadIdx.x];  // the load and the store access 4 sectors each
}

__global__ void strided_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[threadIdx.x * 32];  // load: 32 sectors where 4 are sufficient
}

__global__ void stride_two_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[threadIdx.x * 2];  // load: 8 sectors
}

__global__ void reversed_kernel(const float* x, float* out, int n) {
    out[31 - threadIdx.x] = x[31 - threadIdx.x];  // 4 sectors: the order of the lanes does not matter
}

__global__ void scattered_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[threadIdx.x * threadIdx.x % 32 * 8];  // load: one sector for each different square modulo 32
}

__global__ void uniform_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[5];  // load: 1 sector, 4 bytes
}

__global__ void shifted_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = x[threadIdx.x + 1];  // load: 5 sectors
}

__global__ void vectors_kernel(const float* x, float* out, int n) {
    const float4 four = reinterpret_cast<const float4*>(x)[threadIdx.x];  // the load accesses 16 sectors
    reinterpret_cast<float4*>(out)[threadIdx.x] = four;                   // the store accesses 16 sectors
}

__global__ void halves_kernel(const __half* x, __half* out, int n) {
    out[threadIdx.x] = x[threadIdx.x];  // the load and the store access 2 sectors each
}

__global__ void guarded_kernel(const float* x, float* out, int n) {
    if (threadIdx.x < 10) out[threadIdx.x] = x[threadIdx.x];  // 10 active lanes, which access 2 sectors
}

__global__ void branches_kernel(const float* x, float* out, int n) {
    if (threadIdx.x % 2) {
        out[threadIdx.x] = x[threadIdx.x];  // 16 active lanes
    } else {
        out[threadIdx.x] = -x[threadIdx.x];  // 16 active lanes
    }
}

__global__ void loop_kernel(const float* x, float* out, int n) {
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += x[i];  // n / 32 load requests
    out[threadIdx.x] = sum;
}

__global__ void transpose_32_kernel(const float* x, float* out, int n) {
    __shared__ float tile[32][32];
    for (int row = 0; row < 32; ++row) tile[row][threadIdx.x] = x[row * 32 + threadIdx.x];  // no conflict
    __syncthreads();
    for (int row = 0; row < 32; ++row) out[row * 32 + threadIdx.x] = tile[threadIdx.x][row];  // 32-way bank conflict
}

__global__ void transpose_33_kernel(const float* x, float* out, int n) {
    __shared__ float tile[32][33];
    for (int row = 0; row < 32; ++row) tile[row][threadIdx.x] = x[row * 32 + threadIdx.x];  // no conflict
    __syncthreads();
    for (int row = 0; row < 32; ++row) out[row * 32 + threadIdx.x] = tile[threadIdx.x][row];  // no conflict
}

template <int STRIDE>
__global__ void shared_stride_kernel(const float* x, float* out, int n) {
    __shared__ float tile[32 * STRIDE];
    for (int i = threadIdx.x; i < 32 * STRIDE; i += 32) tile[i] = x[i];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x * STRIDE];  // gcd(STRIDE, 32)-way bank conflict
}

__global__ void shared_broadcast_kernel(const float* x, float* out, int n) {
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[7] + tile[threadIdx.x / 8];  // no conflict: all lanes of a bank read the same word
}

__global__ void shared_float4_kernel(const float* x, float* out, int n) {
    __shared__ float4 tile[32];
    tile[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];  // 4 wavefronts, and 4 are ideal
    __syncthreads();
    reinterpret_cast<float4*>(out)[threadIdx.x] = tile[31 - threadIdx.x];  // also 4 wavefronts
}

__global__ void shared_float2_kernel(const float* x, float* out, int n) {
    __shared__ float2 tile[32];
    tile[threadIdx.x] = reinterpret_cast<const float2*>(x)[threadIdx.x];  // 2 wavefronts, and 2 are ideal
    __syncthreads();
    reinterpret_cast<float2*>(out)[threadIdx.x] = tile[threadIdx.x];
}

__global__ void shared_float4_column_kernel(const float* x, float* out, int n) {
    __shared__ float4 tile[32][8];
    for (int row = 0; row < 32; ++row)
        if (threadIdx.x < 8) tile[row][threadIdx.x] = reinterpret_cast<const float4*>(x)[row * 8 + threadIdx.x];
    __syncthreads();
    reinterpret_cast<float4*>(out)[threadIdx.x] = tile[threadIdx.x][0];  // 8-way conflict per quarter-warp
}

// The first `lanes` lanes read the same 16 bytes. This takes one wavefront if they are in one half of the warp, and two
// if they are in both halves, as on an H200.
__global__ void shared_float4_broadcast_kernel(const float* x, float* out, int lanes) {
    __shared__ float4 tile[8];
    if (threadIdx.x < 8) tile[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < lanes) reinterpret_cast<float4*>(out)[threadIdx.x] = tile[lanes % 8];
}

__global__ void shared_halves_kernel(const __half* x, __half* out, int n) {
    __shared__ __half tile[64];
    tile[threadIdx.x] = x[threadIdx.x];  // two lanes share a word: 1 wavefront
    tile[threadIdx.x + 32] = x[threadIdx.x + 32];
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x * 2];  // 32 words: 1 wavefront
}

__global__ void atomics_kernel(const float* x, float* out, int n) {
    atomicAdd(&out[threadIdx.x % 8], x[threadIdx.x]);  // one request to one sector
}

__global__ void shared_atomics_kernel(float* out, int n) {
    __shared__ int bins[32 * 32];
    for (int i = threadIdx.x; i < 32 * 32; i += 32) bins[i] = 0;
    __syncwarp();
    const int lane = threadIdx.x;
    atomicAdd(&bins[lane], 1);       // each lane has a separate bank: 1 wavefront
    atomicAdd(&bins[0], 1);          // all lanes add to one word: 32 wavefronts, which is the minimum
    atomicAdd(&bins[lane / 4], 1);   // four lanes add to each of 8 words: 4 wavefronts
    atomicAdd(&bins[32 * lane], 1);  // 32 words in one bank: 32 wavefronts, where 1 is sufficient
    __syncwarp();
    out[lane] = bins[lane];
}
extern "C" void shared_atomics(const float* x, float* out, int n, cudaStream_t stream) {
    shared_atomics_kernel<<<1, 32, 0, stream>>>(out, n);
}

__global__ void many_blocks_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + x[0];  // each byte is loaded and stored once, and x[0] once per warp
}
extern "C" void many_blocks(const float* x, float* out, int n, cudaStream_t stream) {
    many_blocks_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}

__global__ void long_loop_kernel(const float* x, float* out, int n) {
    __shared__ float tile[32];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 5000; ++i) sum += tile[(threadIdx.x + i) % 32];  // 5000 requests, whatever the order of threads
    out[threadIdx.x] = sum;
}

__global__ void warps_kernel(const float* x, float* out, int n) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];  // 8 warps make 8 requests
    __syncthreads();
    float sum = tile[threadIdx.x ^ 1];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    out[threadIdx.x] = sum;
}
extern "C" void warps(const float* x, float* out, int n, cudaStream_t stream) {
    warps_kernel<<<1, 256, 0, stream>>>(x, out, n);
}

__global__ void async_copies_kernel(const float* x, float* out, int n) {
    __shared__ float4 tile[32];
    __pipeline_memcpy_async(&tile[threadIdx.x], &reinterpret_cast<const float4*>(x)[threadIdx.x], 16);  // 16 sectors
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x].x;
}

// Three copies. The wait for the first one leaves the second in flight; the third one has its own wait.
__global__ void prefetched_copies_kernel(const float* x, float* out, int n) {
    __shared__ float4 tile[3][32];
    const float4* from = reinterpret_cast<const float4*>(x) + threadIdx.x;
    __pipeline_memcpy_async(&tile[0][threadIdx.x], from, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);  // a wait without pending copies
    __pipeline_memcpy_async(&tile[1][threadIdx.x], from + 32, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __pipeline_wait_prior(1);  // again: no more copies need to be complete
    __pipeline_wait_prior(0);
    __pipeline_memcpy_async(&tile[2][threadIdx.x], from + 64, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = tile[0][threadIdx.x].x + tile[1][threadIdx.x].x + tile[2][threadIdx.x].x;
}

// Copies in the second block: one is in flight when the block reads what the first block has written, two are not. After
// the grid barrier, one more copy of each block has been in flight.
__global__ void early_copies_kernel(const float* x, float* out, int* flag) {
    __shared__ float4 tile[4][32];
    const float4* from = reinterpret_cast<const float4*>(x) + threadIdx.x;
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) atomicExch(flag, 1);
    } else {
        __pipeline_memcpy_async(&tile[0][threadIdx.x], from, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __pipeline_memcpy_async(&tile[1][threadIdx.x], from + 32, 16);
        __pipeline_commit();
        while (threadIdx.x == 0 && atomicAdd(flag, 0) == 0) {
        }
        __syncthreads();
        __pipeline_wait_prior(0);
        __pipeline_memcpy_async(&tile[2][threadIdx.x], from + 64, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
    }
    __pipeline_memcpy_async(&tile[3][threadIdx.x], from + 96, 16);
    __pipeline_commit();
    cooperative_groups::this_grid().sync();
    __pipeline_wait_prior(0);
    out[32 * blockIdx.x + threadIdx.x] = tile[3][threadIdx.x].x;
}
extern "C" void early_copies(const float* x, float* out, int n, cudaStream_t stream) {
    int* flag = nullptr;
    cudaMallocAsync(&flag, sizeof(int), stream);
    cudaMemsetAsync(flag, 0, sizeof(int), stream);
    void* arguments[] = {&x, &out, &flag};
    cudaLaunchCooperativeKernel(early_copies_kernel, dim3(2), dim3(32), arguments, 0, stream);
    cudaFreeAsync(flag, stream);
}

// Launches two kernels or copies, and then three times a graph that consists of two.
extern "C" void replays(const float* x, float* out, int n, cudaStream_t stream) {
    cudaStream_t capturing;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamCreate(&capturing);
    cudaMemsetAsync(out, 0, 128, stream);
    async_copies_kernel<<<1, 32, 0, stream>>>(x, out, n);
    cudaStreamBeginCapture(capturing, cudaStreamCaptureModeThreadLocal);
    async_copies_kernel<<<1, 32, 0, capturing>>>(x, out, n);
    async_copies_kernel<<<1, 32, 0, capturing>>>(x, out, n);
    cudaStreamEndCapture(capturing, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, stream);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(capturing);
}

__constant__ float table[32];

__global__ void constants_kernel(const float* x, float* out, int n) {
    out[threadIdx.x] = table[3] + x[threadIdx.x];  // all lanes read the same word of constant memory
}

__global__ void scratch_kernel(const float* x, float* scratch, int n) {
    if (threadIdx.x < n) scratch[threadIdx.x] = x[threadIdx.x];
}
__device__ float kept[100];
__global__ void keep_kernel(float* out) { out[threadIdx.x] = kept[threadIdx.x]; }

extern "C" void scratch(const float* x, float* out, int n, cudaStream_t stream) {
    float *a = nullptr, *b = nullptr;
    cudaMallocAsync(&a, 1000, stream);
    scratch_kernel<<<1, 32, 0, stream>>>(x, a, 32);
    cudaFreeAsync(a, stream);
    cudaMallocAsync(&a, 600, stream);
    cudaMallocAsync(&b, 700, stream);  // a and b are allocated together: 1300 bytes
    scratch_kernel<<<1, 32, 0, stream>>>(x, b, 32);
    cudaFreeAsync(a, stream);
    cudaFreeAsync(b, stream);
    keep_kernel<<<1, 32, 0, stream>>>(out);  // the kernel uses 400 bytes in a __device__ variable
}

// The host copies to and from device memory. Comments say what the simulator must count.
extern "C" void host_copies(const float* x, float* out, int n, cudaStream_t stream) {
    float buffer[32];
    float* scratch = nullptr;
    cudaMalloc(&scratch, sizeof(buffer));
    cudaMemcpy(out, x, sizeof(buffer), cudaMemcpyDeviceToDevice);  // 128 bytes read and 128 written on the device
    cudaMemcpy(scratch, buffer, sizeof(buffer), cudaMemcpyHostToDevice);  // copies 128 bytes to the device
    cudaMemcpy(buffer, scratch, 100, cudaMemcpyDeviceToHost);             // copies 100 bytes to the host
    cudaMemcpy(out, buffer, 60, cudaMemcpyDefault);                       // copies 60 bytes to the device
    cudaFree(scratch);
}

__global__ void copy_words_kernel(const float* x, float* out, int n) {
    std::memcpy(out + threadIdx.x, x + threadIdx.x, sizeof(float) * (n > 0));
}
