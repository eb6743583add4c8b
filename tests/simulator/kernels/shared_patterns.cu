// A warp accesses shared memory once, 4, 8 or 16 bytes per lane. Each lane has a slot, the index of its element (-1:
// the lane is inactive). Counters separate reads and writes, so one kernel measures the read after filling the array
// with writes, and the other measures the write before copying the array out with reads.
#include <cuda_runtime.h>

constexpr int kBytes = 16384;

template <typename T>
__global__ void read_slots(const int* slots, unsigned* out) {
    __shared__ T cells[kBytes / sizeof(T)];
    for (int i = threadIdx.x; i < kBytes / sizeof(T); i += 32) cells[i] = T{};
    __syncwarp();
    const int slot = slots[threadIdx.x];
    if (slot >= 0) reinterpret_cast<T*>(out)[threadIdx.x] = cells[slot];
}

template <typename T>
__global__ void write_slots(const int* slots, unsigned* out) {
    __shared__ T cells[kBytes / sizeof(T)];
    const int slot = slots[threadIdx.x];
    const T value = reinterpret_cast<T*>(out)[threadIdx.x];
    if (slot >= 0) cells[slot] = value;
    __syncwarp();
    for (int i = threadIdx.x; i < kBytes / sizeof(T); i += 32) reinterpret_cast<T*>(out)[i] = cells[i];
}

// Launches one kernel for each of `count` patterns. slots: [count, 32]; out: [kBytes / 4].
extern "C" void run(const int* slots, unsigned* out, int count, int bytes, bool write, cudaStream_t stream) {
    for (int i = 0; i < count; ++i, slots += 32) {
        if (bytes == 4) (write ? write_slots<unsigned> : read_slots<unsigned>)<<<1, 32, 0, stream>>>(slots, out);
        if (bytes == 8) (write ? write_slots<uint2> : read_slots<uint2>)<<<1, 32, 0, stream>>>(slots, out);
        if (bytes == 16) (write ? write_slots<uint4> : read_slots<uint4>)<<<1, 32, 0, stream>>>(slots, out);
    }
}
