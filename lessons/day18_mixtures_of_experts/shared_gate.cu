// The shared expert of Qwen2-MoE has a gate of its own: out[t] = sigmoid(gate[t]) * shared[t].
//
//   gate: [tokens]     shared, out: [tokens, hidden]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void shared_gate_kernel(const __half* gate, const __half* shared, __half* out, int hidden) {
    const long long token = blockIdx.x;
    const float sigmoid = 1.0f / (1.0f + __expf(-__half2float(gate[token])));
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        out[token * hidden + i] = __float2half(sigmoid * __half2float(shared[token * hidden + i]));
    }
}

extern "C" void shared_gate_f16(const __half* gate, const __half* shared, __half* out, int tokens, int hidden,
                                cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    shared_gate_kernel<<<tokens, 128, 0, stream>>>(gate, shared, out, hidden);
}
