// Executes every warp intrinsic with all lanes. Each launcher writes rows of results, out[row][lane].
#include <cuda_runtime.h>

// Writes four rows: the results of __shfl_sync, _up_, _down_ and _xor_ for an argument and a width.
__global__ void shuffles_kernel(int* out, int argument, int width) {
    const int lane = threadIdx.x;
    const int value = 1000 + lane;
    out[lane] = __shfl_sync(0xffffffff, value, argument, width);
    out[32 + lane] = __shfl_up_sync(0xffffffff, value, argument, width);
    out[64 + lane] = __shfl_down_sync(0xffffffff, value, argument, width);
    out[96 + lane] = __shfl_xor_sync(0xffffffff, value, argument, width);
}

extern "C" void shuffles(int* out, int argument, int width, cudaStream_t stream) {
    shuffles_kernel<<<1, 32, 0, stream>>>(out, argument, width);
}

// Shuffles all types, which must arrive with all their bytes.
__global__ void types_kernel(double* out) {
    const int lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    double sum = __shfl_xor_sync(all, lane * 0.5, 1);
    sum += __shfl_xor_sync(all, lane * 0.25f, 1);
    sum += __shfl_xor_sync(all, (long long)lane << 40, 1);
    sum += __shfl_xor_sync(all, (unsigned long long)lane << 41, 1);
    sum += __shfl_xor_sync(all, (unsigned)lane, 1);
    sum += __shfl_xor_sync(all, (long)lane, 1);
    out[lane] = sum;
}

extern "C" void types(double* out, cudaStream_t stream) { types_kernel<<<1, 32, 0, stream>>>(out); }

__global__ void votes_kernel(unsigned* out, const int* x) {
    const int lane = threadIdx.x;
    const unsigned all = 0xffffffff;
    out[lane] = __ballot_sync(all, x[lane]);
    out[32 + lane] = __all_sync(all, x[lane]) | __any_sync(all, x[lane]) << 1 | __uni_sync(all, x[lane]) << 2;
    out[64 + lane] = __match_any_sync(all, x[lane]);
    int same;
    out[96 + lane] = __match_all_sync(all, x[lane], &same);
    out[128 + lane] = same;
    out[160 + lane] = __match_any_sync(all, (unsigned long long)x[lane] << 33);
    out[192 + lane] = __reduce_add_sync(all, x[lane]);
    out[224 + lane] = __reduce_min_sync(all, x[lane]);
    out[256 + lane] = __reduce_max_sync(all, x[lane]);
    out[288 + lane] = __reduce_max_sync(all, (unsigned)x[lane]);
    out[320 + lane] = __reduce_min_sync(all, (unsigned)x[lane]);
    out[352 + lane] = __reduce_and_sync(all, (unsigned)x[lane]);
    out[384 + lane] = __reduce_or_sync(all, (unsigned)x[lane]);
    out[416 + lane] = __reduce_xor_sync(all, (unsigned)x[lane]);
}

extern "C" void votes(int* out, const int* x, cudaStream_t stream) {
    votes_kernel<<<1, 32, 0, stream>>>((unsigned*)out, x);
}

// The halves of a warp diverge and reconverge. Then the odd and the even lanes do the same.
__global__ void partial_kernel(int* out) {
    const int lane = threadIdx.x % 32;
    int value = lane;
    if (lane < 16) {
        for (int i = 0; i < 5; ++i) value = __shfl_sync(0x0000ffff, value, (lane + 1) % 16);
    } else {
        value = __reduce_add_sync(0xffff0000, 1);
    }
    __syncwarp();
    const unsigned mine = lane % 2 ? 0xaaaaaaaa : 0x55555555;
    const unsigned ballot = __ballot_sync(mine, value == lane);
    __syncwarp(mine);
    out[threadIdx.x] = value + 1000 * __popc(ballot);
}

extern "C" void partial(int* out, int warps, cudaStream_t stream) { partial_kernel<<<1, warps * 32, 0, stream>>>(out); }

// A warp has fewer than 32 lanes, and some have exited. A full mask then names the remaining lanes.
__global__ void missing_kernel(int* out, int leave) {
    if (threadIdx.x >= leave) return;
    const unsigned ballot = __ballot_sync(0xffffffff, 1);
    int sum = 1;
    for (int offset = 16; offset > 0; offset /= 2) {
        const int other = __shfl_xor_sync(0xffffffff, sum, offset);
        if ((threadIdx.x ^ offset) < leave) sum += other;
    }
    out[threadIdx.x] = __popc(ballot) + 1000 * sum;
}

extern "C" void missing(int* out, int threads, int leave, cudaStream_t stream) {
    missing_kernel<<<1, threads, 0, stream>>>(out, leave);
}

// The value from an inactive lane is undefined; the simulator returns all ones.
__global__ void inactive_kernel(int* out) {
    if (threadIdx.x < 8) out[threadIdx.x] = __shfl_down_sync(0xff, threadIdx.x, 4);
}

extern "C" void inactive(int* out, cudaStream_t stream) { inactive_kernel<<<1, 32, 0, stream>>>(out); }

// One lane makes the atomic addition for all active lanes, and adds their number.
__global__ void aggregated_kernel(int* counter, int* place, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 3 != 0) {
        const unsigned active = __activemask();
        const int leader = __ffs(active) - 1;
        const int lane = threadIdx.x % 32;
        int first = 0;
        if (lane == leader) {
            first = atomicAdd(counter, __popc(active));
            atomicAdd(counter + 1, 1);
        }
        first = __shfl_sync(active, first, leader);
        place[i] = first + __popc(active & ((1u << lane) - 1));
    }
}

extern "C" void aggregated(int* counter, int* place, int n, cudaStream_t stream) {
    aggregated_kernel<<<(n + 63) / 64, 64, 0, stream>>>(counter, place, n);
}

// The same intrinsic in unrolled and in rolled loops, in a template, and in two branches of the same warp.
template <int Rounds>
__device__ int rounds(int value) {
#pragma unroll
    for (int i = 0; i < Rounds; ++i) value += __shfl_xor_sync(0xffffffff, value, 1 << (i % 5));
    return value;
}

__global__ void unrolled_kernel(int* out, int n) {
    int value = threadIdx.x;
    value = rounds<5>(value);
    for (int i = 0; i < n; ++i) value = __shfl_down_sync(0xffffffff, value, 1) + __any_sync(0xffffffff, i == 3);
    out[threadIdx.x] = value;
}

extern "C" void unrolled(int* out, int n, cudaStream_t stream) { unrolled_kernel<<<1, 32, 0, stream>>>(out, n); }
