// Looks up the simulator's switch for checks by name at run time.
// Expected: the build is refused.
#include <dlfcn.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    using Configure = int (*)(const char*, const char*);
    auto configure = reinterpret_cast<Configure>(dlsym(RTLD_DEFAULT, "sim_configure"));
    if (configure) configure("checks", "0");
    race(x, out, n, stream);
}
