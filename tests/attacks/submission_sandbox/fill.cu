// A launcher writes to the simulator's data with std::fill_n.
// Expected finding: not_its_memory.
#include <algorithm>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    std::fill_n(reinterpret_cast<char*>(const_cast<long*>(simulators_data())), n, 0);
}
