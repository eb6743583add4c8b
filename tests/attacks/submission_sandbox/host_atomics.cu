// The launcher reads and writes device memory with std::atomic, in case the simulator does not check that.
// Expected finding: host_access.
#include <atomic>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    auto from = reinterpret_cast<const std::atomic<float>*>(x);
    auto to = reinterpret_cast<std::atomic<float>*>(out);
    for (int i = 0; i < n; ++i) to[i].store(2.0f * from[i].load());
}
