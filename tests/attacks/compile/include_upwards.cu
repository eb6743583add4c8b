// Leaves its folder with `..` in an include path.
#include "../../../../../../../../../../@SOLUTION@"

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
