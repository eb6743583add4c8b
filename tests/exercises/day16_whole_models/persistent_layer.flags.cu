// The phases of the layer, separated by a barrier of our own: each block stores the number of the phase that it has
// completed, and waits for the numbers of all blocks. Each warp takes rows in turn, and copies its first rows of the next
// matrix to shared memory before the barrier.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/decode.cuh"
#include "llmk/reduce.cuh"

constexpr int kThreads = 256, kAheadBytes = 8192;  // per warp

template <typename T>
struct Layer {
    const T *x, *weights;
    const float *norms, *rope;
    const int* table;
    T *k_cache, *v_cache, *out;
    float *qkv, *attended, *sum, *inner;  // the workspace
    unsigned long long* flags;            // one per block
    int* state;
    int hidden, heads, kv_heads, head_dim, inter, page_size, past;
    float eps;
};

// Store that this block has completed a phase, and wait until all blocks have. A flag is a word of 64 bits whose upper half
// is the number of the phase, so the words of earlier launches count as earlier phases.
__device__ void wait_for_all_blocks(unsigned long long* flags, unsigned phase) {
    __syncthreads();
    __threadfence();
    if (threadIdx.x == 0) {
        asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(flags + blockIdx.x),
                     "l"(static_cast<unsigned long long>(phase) << 32)
                     : "memory");
    }
    for (int block = threadIdx.x; block < gridDim.x; block += kThreads) {
        unsigned long long flag = 0;
        do {
            asm volatile("ld.acquire.gpu.global.b64 %0, [%1];" : "=l"(flag) : "l"(flags + block) : "memory");
        } while (static_cast<int>(static_cast<unsigned>(flag >> 32) - phase) < 0);
    }
    __threadfence();
    __syncthreads();
}

// The dot product of a row of weights with `input` in shared memory, by one warp; every lane gets it.
template <typename T>
__device__ float dot(const T* row, const float* input, int columns) {
    float sum = 0;
    for (int v = threadIdx.x % 32; v < columns / 8; v += 32) {
        float w[8];
        llmk::unpack<T>(reinterpret_cast<const uint4*>(row)[v], w);
        for (int j = 0; j < 8; ++j) sum += w[j] * input[v * 8 + j];
    }
    return llmk::warp_sum(sum);
}

// This warp's units of a matrix: unit i has `columns` neighboring elements, one row or two. The first ones, as many as fit
// into `buffer`, are copied there at once.
template <typename T>
struct Units {
    const T *matrix, *buffer;
    int columns, first, step, kept = 0;

    __device__ Units(const T* matrix, int units, int columns, int first, int step, T* buffer)
        : matrix(matrix), buffer(buffer), columns(columns), first(first), step(step) {
        __syncwarp();  // the lanes have read the units that were here before
        for (; first + kept * step < units && (kept + 1) * columns * sizeof(T) <= kAheadBytes; ++kept) {
            const T* from = matrix + static_cast<size_t>(first + kept * step) * columns;
            for (int c = threadIdx.x % 32 * 8; c < columns; c += 256) {
                __pipeline_memcpy_async(buffer + kept * columns + c, from + c, 16);
            }
        }
        __pipeline_commit();
    }
    __device__ void wait() const {
        __pipeline_wait_prior(0);
        __syncwarp();
    }
    __device__ const T* at(int unit) const {
        const int i = (unit - first) / step;
        return i < kept ? buffer + i * columns : matrix + static_cast<size_t>(unit) * columns;
    }
};

template <typename T>
__device__ void normalize(const T* x, const float* weight, float* input, int hidden, float eps) {
    float squares = 0;
    for (int i = threadIdx.x; i < hidden; i += kThreads) {
        input[i] = static_cast<float>(x[i]);
        squares += input[i] * input[i];
    }
    const float scale = rsqrtf(llmk::block_sum(squares) / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += kThreads) input[i] *= scale * weight[i];
    __syncthreads();
}

template <typename T>
__device__ size_t cache_row(const Layer<T>& l, int head, int position) {
    const size_t page = l.table[position / l.page_size];
    return ((page * l.kv_heads + head) * l.page_size + position % l.page_size) * l.head_dim;
}

// Attention of one head by one warp; lanes hold columns.
template <typename T>
__device__ void attend(const Layer<T>& l, int head) {
    const int lane = threadIdx.x % 32, kv_head = head / (l.heads / l.kv_heads);
    const float scale = rsqrtf(static_cast<float>(l.head_dim));
    float sums[8] = {}, largest = -INFINITY, total = 0;
    for (int key = 0; key <= l.past; ++key) {
        const size_t row = cache_row(l, kv_head, key);
        float score = 0;
        for (int c = lane; c < l.head_dim; c += 32) {
            score += l.qkv[head * l.head_dim + c] * static_cast<float>(l.k_cache[row + c]);
        }
        score = llmk::warp_sum(score) * scale;
        const float now = fmaxf(largest, score), old_share = expf(largest - now), share = expf(score - now);
        total = total * old_share + share;
        for (int j = 0; j < 8; ++j) {
            const int c = lane + 32 * j;
            if (c < l.head_dim) sums[j] = sums[j] * old_share + share * static_cast<float>(l.v_cache[row + c]);
        }
        largest = now;
    }
    for (int j = 0; j < 8; ++j) {
        const int c = lane + 32 * j;
        if (c < l.head_dim) l.attended[head * l.head_dim + c] = sums[j] / total;
    }
}

template <typename T>
__global__ void layer_kernel(const Layer<T> l) {
    extern __shared__ __align__(16) unsigned char memory[];
    T* buffer = reinterpret_cast<T*>(memory + threadIdx.x / 32 * kAheadBytes);
    float* input = reinterpret_cast<float*>(memory + kThreads / 32 * kAheadBytes);
    unsigned phase = l.state[0];
    const int first = blockIdx.x * (kThreads / 32) + threadIdx.x / 32, step = gridDim.x * (kThreads / 32);
    const int lane = threadIdx.x % 32, width = l.heads * l.head_dim, rows = (l.heads + 2 * l.kv_heads) * l.head_dim;
    const T* weights = l.weights;

    normalize(l.x, l.norms, input, l.hidden, l.eps);
    for (int row = 2 * first; row < rows; row += 2 * step) {
        float a = dot(weights + static_cast<size_t>(row) * l.hidden, input, l.hidden);
        float b = dot(weights + static_cast<size_t>(row + 1) * l.hidden, input, l.hidden);
        if (lane != 0) continue;
        const int head = row / l.head_dim, column = row % l.head_dim;
        if (head < l.heads + l.kv_heads) {
            const float cosine = l.rope[column], sine = l.rope[column + 1], turned = a * cosine - b * sine;
            b = b * cosine + a * sine;
            a = turned;
        }
        if (head < l.heads) {
            l.qkv[row] = a;
            l.qkv[row + 1] = b;
        } else {
            const int other = head - l.heads;
            T* cache = other < l.kv_heads ? l.k_cache : l.v_cache;
            T* to = cache + cache_row(l, other % l.kv_heads, l.past) + column;
            to[0] = static_cast<T>(a);
            to[1] = static_cast<T>(b);
        }
    }
    weights += static_cast<size_t>(rows) * l.hidden;
    const Units<T> output(weights, l.hidden, width, first, step, buffer);
    wait_for_all_blocks(l.flags, ++phase);
    for (int head = first; head < l.heads; head += step) attend(l, head);
    wait_for_all_blocks(l.flags, ++phase);
    for (int c = threadIdx.x; c < width; c += kThreads) input[c] = l.attended[c];
    __syncthreads();
    output.wait();
    for (int row = first; row < l.hidden; row += step) {
        const float sum = dot(output.at(row), input, width);
        if (lane == 0) l.sum[row] = static_cast<float>(l.x[row]) + sum;
    }
    weights += static_cast<size_t>(l.hidden) * width;
    const Units<T> gate_up(weights, l.inter, 2 * l.hidden, first, step, buffer);
    wait_for_all_blocks(l.flags, ++phase);
    normalize(l.sum, l.norms + l.hidden, input, l.hidden, l.eps);
    gate_up.wait();
    for (int i = first; i < l.inter; i += step) {
        const float gate = dot(gate_up.at(i), input, l.hidden);
        const float up = dot(gate_up.at(i) + l.hidden, input, l.hidden);
        if (lane == 0) l.inner[i] = gate / (1.0f + expf(-gate)) * up;
    }
    weights += 2 * static_cast<size_t>(l.inter) * l.hidden;
    const Units<T> down(weights, l.hidden, l.inter, first, step, buffer);
    wait_for_all_blocks(l.flags, ++phase);
    for (int i = threadIdx.x; i < l.inter; i += kThreads) input[i] = l.inner[i];
    __syncthreads();
    down.wait();
    for (int row = first; row < l.hidden; row += step) {
        const float sum = dot(down.at(row), input, l.inter);
        if (lane == 0) l.out[row] = static_cast<T>(l.sum[row] + sum);
    }
    wait_for_all_blocks(l.flags, ++phase);  // all blocks have read the state
    if (blockIdx.x == 0 && threadIdx.x == 0) l.state[0] += 16;
}

template <typename T>
void persistent_layer(const T* x, const float* norms, const T* weights, const float* rope, const int* table, T* k_cache,
                      T* v_cache, T* out, long long* words, int* state, int hidden, int heads, int kv_heads,
                      int head_dim, int inter, int page_size, int pages, int past, float eps, cudaStream_t stream) {
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    float* qkv = reinterpret_cast<float*>(words + processors);
    float *attended = qkv + heads * head_dim, *sum = attended + heads * head_dim, *inner = sum + hidden;
    auto* flags = reinterpret_cast<unsigned long long*>(words);
    Layer<T> layer = {x,     weights, norms, rope,   table, k_cache,  v_cache,  out,   qkv,       attended, sum,
                      inner, flags,   state, hidden, heads, kv_heads, head_dim, inter, page_size, past,     eps};
    const int columns = max(max(hidden, inter), heads * head_dim);
    const int bytes = kThreads / 32 * kAheadBytes + columns * static_cast<int>(sizeof(float));
    cudaFuncSetAttribute(layer_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    void* arguments[] = {&layer};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(layer_kernel<T>), dim3(processors), dim3(kThreads),
                                arguments, bytes, stream);
}
