// The MLP with a ring of two bands, with fences instead of acquire and release. A thread computes one element of a 4 x 32
// tile.
#include <cuda_runtime.h>

constexpr int kRows = 4;
constexpr int kColumns = 32;
constexpr int kDepth = 32;
constexpr int kThreads = kRows * kColumns;
constexpr int kSlots = 2;

__device__ void wait_for(const volatile unsigned* counter, int count) {
    while (*counter < static_cast<unsigned>(count)) {
    }
    __threadfence();
}

__device__ float dot_of_tile(const float* in, const float* weight, int row, int column, int rows, int columns,
                             int depth) {
    __shared__ float in_part[kRows][kDepth], weight_part[kColumns][kDepth + 1];
    const int r = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int first = 0; first < depth; first += kDepth) {
        const bool inside = first + lane < depth;
        in_part[r][lane] = inside && row < rows ? in[static_cast<size_t>(row) * depth + first + lane] : 0.0f;
        for (int c = r; c < kColumns; c += kRows) {
            const int from = column - lane + c;  // the tile's column c
            weight_part[c][lane] =
                inside && from < columns ? weight[static_cast<size_t>(from) * depth + first + lane] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < kDepth; ++k) sum += in_part[r][k] * weight_part[lane][k];
        __syncthreads();
    }
    return sum;
}

__global__ void __launch_bounds__(kThreads) mlp(const float* x, const float* up, const float* down, float* inside,
                                                float* out, unsigned* state, int rows, int hidden, int feed_forward) {
    __shared__ int ticket;
    const int bands = (rows + kRows - 1) / kRows;
    const int inner = (feed_forward + kColumns - 1) / kColumns, outer = (hidden + kColumns - 1) / kColumns;
    const int r = threadIdx.x / 32, c = threadIdx.x % 32;
    // Step s of the queue has the tiles of band s of `inside`, then those of band s - 1 of `out`.
    for (;;) {
        if (threadIdx.x == 0) ticket = static_cast<int>(atomicAdd(state, 1u));
        __syncthreads();
        const int step = ticket / (inner + outer), tile = ticket % (inner + outer);
        __syncthreads();
        if (step > bands) return;
        if (tile < inner) {
            if (step == bands) continue;  // the last step has no band of `inside`
            const int row = step * kRows + r, column = tile * kColumns + c;
            if (threadIdx.x == 0 && step >= kSlots) wait_for(state + 1 + step - kSlots, inner + outer);
            __syncthreads();
            const float z = dot_of_tile(x, up, row, column, rows, feed_forward, hidden);
            if (row < rows && column < feed_forward) {
                inside[static_cast<size_t>(step % kSlots * kRows + r) * feed_forward + column] = z / (1.0f + expf(-z));
            }
            __threadfence();
            __syncthreads();
            if (threadIdx.x == 0) atomicAdd(state + 1 + step, 1u);
        } else {
            const int band = step - 1, row = band * kRows + r, column = (tile - inner) * kColumns + c;
            if (band < 0) continue;  // the first step has no band of `out`
            if (threadIdx.x == 0) wait_for(state + 1 + band, inner);
            __syncthreads();
            const float* slot = inside + static_cast<size_t>(band % kSlots) * kRows * feed_forward;
            const float sum = dot_of_tile(slot, down, r, column, rows - band * kRows, hidden, feed_forward);
            if (row < rows && column < hidden) out[static_cast<size_t>(row) * hidden + column] = sum;
            __syncthreads();
            if (threadIdx.x == 0) {
                __threadfence();
                atomicAdd(state + 1 + band, 1u);
            }
        }
    }
}

extern "C" void two_bands_debug(const float* x, const float* up, const float* down, float* inside, float* out,
                                unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    int device = 0, processors = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaMemsetAsync(state, 0, (1 + static_cast<size_t>(rows)) * sizeof(unsigned), stream);
    mlp<<<processors, kThreads, 0, stream>>>(x, up, down, inside, out, state, rows, hidden, feed_forward);
}
