// A kernel copies the input to pinned memory, which snprintf reads on the host.
// Expected finding: host_copies.
#include <stdio.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    float* pinned;
    cudaMallocHost(reinterpret_cast<void**>(&pinned), 4096);
    reward(x, pinned, n, stream);
    cudaStreamSynchronize(stream);
    char bytes[8];
    snprintf(bytes, sizeof bytes, "%.4s", reinterpret_cast<const char*>(pinned));
    reward(x, out, n, stream);
    cudaFreeHost(pinned);
}
