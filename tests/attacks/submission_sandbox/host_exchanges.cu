// A kernel copies the input to pinned memory. The launcher reads it there by a compare-and-exchange.
// Expected finding: host_copies.
#include <atomic>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    float* pinned;
    cudaMallocHost(reinterpret_cast<void**>(&pinned), 4096);
    reward(x, pinned, n, stream);
    cudaStreamSynchronize(stream);
    int expected = 5;
    reinterpret_cast<std::atomic<int>*>(pinned)->compare_exchange_strong(expected, 5);
    reward(x, out, n, stream);
    cudaFreeHost(pinned);
}
