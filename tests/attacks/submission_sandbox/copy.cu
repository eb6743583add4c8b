// A launcher writes to the simulator's data with memcpy.
// Expected finding: not_its_memory.
#include <string.h>
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    long zeros[4] = {n};
    memcpy(const_cast<long*>(simulators_data()), zeros, sizeof(long) * (1 + (n & 3)));
}
