// Includes files outside the submission's folder, with `..` in the path.
#include "../../../../../../../../../../@SOLUTION@"

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) { reward(x, out, n, stream); }
