// A launcher writes to the simulator's data with an atomic operation.
// Expected finding: not_its_memory.
#include <atomic>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    reinterpret_cast<std::atomic<long>*>(const_cast<long*>(simulators_data()))->store(0);
}
