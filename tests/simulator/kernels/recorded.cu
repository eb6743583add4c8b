// Kernels whose steps are known, for tests of the recordings that the player shows.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

__global__ void coalesced(const float* x, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i];
}

__global__ void strided(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x * 8]; }

__global__ void conflicts(float* out) {
    __shared__ float square[32][32];
    square[threadIdx.x][0] = 1.5f;
    __syncthreads();
    out[threadIdx.x] = square[threadIdx.x][0];
}

// Warp 0 works before the barrier, at which the other warps wait for it.
__global__ void waits(float* out) {
    __shared__ float part[32];
    if (threadIdx.x < 32) part[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = part[threadIdx.x % 32];
}

__global__ void races(float* out) {
    __shared__ float part[64];
    part[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = part[63 - threadIdx.x];  // race: a barrier is missing before this read
}

// The second round overwrites elements that threads may still read in the first round.
__global__ void rounds(float* out) {
    __shared__ float part[64];
    for (int k = 0; k < 2; ++k) {
        part[threadIdx.x] = static_cast<float>(k);
        __syncthreads();
        out[threadIdx.x] += part[63 - threadIdx.x];
    }
}

__global__ void diverges(float* out) {
    int lane = threadIdx.x;
    if (lane < 8) {
        out[lane] = 1.0f;
    } else {
        out[lane] = 2.0f;
    }
    for (int k = 0; k < lane % 4; ++k) out[32 + 32 * k + lane] = static_cast<float>(k);
    __syncwarp();
    out[lane] = 3.0f;
}

__global__ void shuffles(float* out) {
    float value = out[threadIdx.x];
    value += __shfl_xor_sync(0xffffffff, value, 1);
    if (threadIdx.x >= 16) {
        out[32 + threadIdx.x] = value;
        value += __shfl_xor_sync(0xffff0000, value, 2);
    }
    out[threadIdx.x] = value;
}

__global__ void copies(const float* x, float* out) {
    __shared__ alignas(16) float stage[2][128];
    for (int k = 0; k < 2; ++k) {
        __pipeline_memcpy_async(&stage[k][threadIdx.x * 4], x + k * 128 + threadIdx.x * 4, 16);
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncwarp();
    out[threadIdx.x] = stage[0][threadIdx.x];
    __pipeline_wait_prior(0);
    __syncwarp();
    out[32 + threadIdx.x] = stage[1][threadIdx.x];
}

// A two-dimensional grid of two-dimensional blocks.
__global__ void plane(float* out) {
    int place = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y;
    out[place + threadIdx.y * blockDim.x + threadIdx.x] = 1.0f;
}

// Writes an element twice, then a structure of two pieces. The compiler calls the hooks of both pieces, and then stores
// both.
__global__ void settles(float* out) {
    __shared__ float part[32];
    __shared__ alignas(16) float4 pairs[64];
    struct Pair {
        float4 first, second;
    };
    volatile float* again = part;
    again[threadIdx.x] = 1.0f;
    again[threadIdx.x] = 2.0f;
    reinterpret_cast<Pair*>(pairs)[threadIdx.x] = {{3.0f, 3.0f, 3.0f, 3.0f}, {4.0f, 4.0f, 4.0f, 4.0f}};
    out[threadIdx.x] = part[threadIdx.x] + pairs[2 * threadIdx.x].x;
}

__global__ void hangs(float* out) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1.0f;
}

__global__ void endless(float* out, int rounds) {
    for (int k = 0; k < rounds; ++k) {
        out[threadIdx.x] += 1.0f;
        __syncthreads();
    }
}

// Warp 0 makes more accesses than the recorder can hold, the other warps make few.
__global__ void apart(float* out, int rounds) {
    for (int k = 0; k < (threadIdx.x < 32 ? rounds : 3); ++k) {
        out[threadIdx.x] += 1.0f;
        __syncwarp();
    }
}

__global__ void adds(int* out) {
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 7;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = sum;
}

extern "C" void run_coalesced(const float* x, float* out, cudaStream_t s) { coalesced<<<2, 64, 0, s>>>(x, out); }
extern "C" void run_strided(const float* x, float* out, cudaStream_t s) { strided<<<1, 32, 0, s>>>(x, out); }
extern "C" void run_conflicts(float* out, cudaStream_t s) { conflicts<<<1, 32, 0, s>>>(out); }
extern "C" void run_waits(float* out, cudaStream_t s) { waits<<<1, 96, 0, s>>>(out); }
extern "C" void run_races(float* out, cudaStream_t s) { races<<<1, 64, 0, s>>>(out); }
extern "C" void run_rounds(float* out, cudaStream_t s) { rounds<<<1, 64, 0, s>>>(out); }
extern "C" void run_diverges(float* out, cudaStream_t s) { diverges<<<1, 32, 0, s>>>(out); }
extern "C" void run_shuffles(float* out, cudaStream_t s) { shuffles<<<1, 32, 0, s>>>(out); }
extern "C" void run_copies(const float* x, float* out, cudaStream_t s) { copies<<<1, 32, 0, s>>>(x, out); }
extern "C" void run_plane(float* out, cudaStream_t s) { plane<<<dim3(2, 3), dim3(16, 2), 0, s>>>(out); }
extern "C" void run_settles(float* out, cudaStream_t s) { settles<<<1, 32, 0, s>>>(out); }
extern "C" void run_apart(float* out, int rounds, cudaStream_t s) { apart<<<1, 96, 0, s>>>(out, rounds); }
extern "C" void run_hangs(float* out, cudaStream_t s) { hangs<<<1, 64, 0, s>>>(out); }
extern "C" void run_endless(float* out, int rounds, cudaStream_t s) { endless<<<1, 128, 0, s>>>(out, rounds); }
// Makes accesses of every width: to one element, contiguous, far apart, and by only some lanes.
__global__ void widths(float* out) {
    __shared__ alignas(16) float pool[1024];
    int t = threadIdx.x;
    for (int i = t; i < 1024; i += 32) pool[i] = static_cast<float>(i);
    __syncthreads();
    const float4* wide = reinterpret_cast<const float4*>(pool);
    const double* twice = reinterpret_cast<const double*>(pool);
    float4 a = wide[3];
    float4 b = wide[t];
    float4 c = wide[t * 8];
    float4 d = wide[t / 2 * 5];
    double e = twice[t];
    double f = twice[t * 16];
    double g = twice[t / 4];
    float h = pool[t * 2];
    float i = pool[t * 17 % 64];
    if (t % 3 == 0) h += wide[t].y;
    atomicAdd(pool + t % 4 * 32, 1.0f);
    out[t * 3] = a.x + b.x + c.x + d.x + h + i + static_cast<float>(e + f + g);
}

extern "C" void run_widths(float* out, cudaStream_t s) { widths<<<1, 32, 0, s>>>(out); }
extern "C" void run_adds(int* out, cudaStream_t s) { adds<<<1, 64, 0, s>>>(out); }
