// The launcher calls memmove on a member of device memory that a member pointer selects.
// Expected finding: host_access.
#include <string.h>
struct Row {
    float first[4];
    float second[4];
};
static float (Row::* volatile chosen)[4] = &Row::second;
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    float values[4];
    auto member = chosen;
    memmove(values, reinterpret_cast<const Row*>(x)->*member, sizeof values);
    volatile float read = values[3];
    (void)read;
}
