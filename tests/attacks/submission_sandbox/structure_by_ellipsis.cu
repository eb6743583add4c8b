// A kernel reads past the end of its input when it passes a structure as a variadic argument.
// Expected finding: out_of_bounds.
#include <stdarg.h>
struct Row {
    float values[20];
};
__device__ __noinline__ float last(int count, ...) {
    va_list arguments;
    va_start(arguments, count);
    Row row = va_arg(arguments, Row);
    va_end(arguments);
    return row.values[19];
}
__device__ float read(const float* x, int) { return last(1, *reinterpret_cast<const Row*>(x)); }
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { twice_with<read>(x, out, n, stream); }
