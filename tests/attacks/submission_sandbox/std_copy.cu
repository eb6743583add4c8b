// A launcher writes to the simulator's data with std::copy.
// Expected finding: not_its_memory.
#include <algorithm>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    long zeros[4] = {n};
    std::copy(zeros, zeros + 1 + (n & 1), const_cast<long*>(simulators_data()));
}
