// Kernels with cuda::barrier, cuda::pipeline and cuda::atomic_ref.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
#pragma nv_diag_suppress static_var_with_dynamic_init

// Uses several phases of one barrier. Each thread does other work between arrive and wait.
__global__ void phases(const float* x, float* out, int rounds) {
    __shared__ float slots[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    float value = x[threadIdx.x];
    for (int round = 0; round < rounds; ++round) {
        slots[threadIdx.x] = value;
        auto token = barrier.arrive();
        value *= 0.5f;
        barrier.wait(static_cast<decltype(token)&&>(token));
        value += slots[(threadIdx.x + 1) % 64];
        barrier.arrive_and_wait();
    }
    out[threadIdx.x] = value;
}

// Starts an asynchronous copy, which completes on the barrier.
__global__ void copied(const float* x, float* out) {
    __shared__ __align__(16) float tile[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    cuda::memcpy_async(block, tile, x, sizeof(tile), barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = tile[255 - i];
}

// Each thread copies with its own pipeline of two stages.
__global__ void own_pipeline(const float4* x, float* out, int rounds) {
    __shared__ float4 stages[2][32];
    auto pipe = cuda::make_pipeline();
    int lane = threadIdx.x;
    float sum = 0;
    pipe.producer_acquire();
    cuda::memcpy_async(&stages[0][lane], &x[lane], cuda::aligned_size_t<16>(16), pipe);
    pipe.producer_commit();
    for (int round = 0; round < rounds; ++round) {
        if (round + 1 < rounds) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stages[(round + 1) % 2][lane], &x[(round + 1) * 32 + lane],
                               cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        float4 v = stages[round % 2][lane];
        sum += v.x + v.y + v.z + v.w;
        pipe.consumer_release();
    }
    out[lane] = sum;
}

// The block shares one pipeline, and every thread reads copies of others.
__global__ void block_pipeline(const float* x, float* out, int rounds) {
    constexpr int stages = 3;
    __shared__ __align__(16) float ring[stages][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    int started = 0;
    for (int round = 0; round < rounds; ++round) {
        for (; started < rounds && started < round + stages; ++started) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, ring[started % stages], x + started * 128, sizeof(float) * 128, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        for (int i = 0; i < 128; i += blockDim.x) sum += ring[round % stages][127 - i - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// The last block to finish adds the outputs of all blocks.
__global__ void last_block(const int* x, int* partial, unsigned* done, int* total) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*done);
    __shared__ bool is_last;
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block>(sum).fetch_add(x[blockIdx.x * blockDim.x + threadIdx.x],
                                                                   cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        is_last = counter.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
        if (is_last) {
            int all = 0;
            for (int i = 0; i < (int)gridDim.x; ++i) all += partial[i];
            *total = all;
        }
    }
}

extern "C" void run_phases(const float* x, float* out, int rounds, cudaStream_t s) {
    phases<<<1, 64, 0, s>>>(x, out, rounds);
}
extern "C" void copy_reversed(const float* x, float* out, cudaStream_t s) { copied<<<1, 64, 0, s>>>(x, out); }
extern "C" void sum_alone(const float* x, float* out, int rounds, cudaStream_t s) {
    own_pipeline<<<1, 32, 0, s>>>((const float4*)x, out, rounds);
}
extern "C" void sum_together(const float* x, float* out, int rounds, cudaStream_t s) {
    block_pipeline<<<1, 64, 0, s>>>(x, out, rounds);
}
extern "C" void sum_in_one_pass(const int* x, int* partial, int* done, int* total, int blocks, cudaStream_t s) {
    last_block<<<blocks, 64, 0, s>>>(x, partial, (unsigned*)done, total);
}
