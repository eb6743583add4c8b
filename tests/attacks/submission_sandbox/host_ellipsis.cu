// The launcher passes a structure in device memory to a function with variadic arguments.
// Expected finding: host_access.
#include <stdarg.h>
struct Row {
    float values[20];
};
__attribute__((noinline)) static float last(int count, ...) {
    va_list arguments;
    va_start(arguments, count);
    Row row = va_arg(arguments, Row);
    va_end(arguments);
    return row.values[19];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    reward(x, out, n, stream);
    if (last(1, *reinterpret_cast<const Row*>(x)) == 1e30f) reward(x, out, n, stream);
}
