// A minimal stand-in for libsim: the runner's tests need only the simulator's interface.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
void* sim_tensor_alloc(const char*, const char*, int, const int64_t*, size_t bytes, size_t) {
    return calloc(1, bytes + 64);
}
void sim_tensor_write(void* device, const void* host, size_t bytes) { memcpy(device, host, bytes); }
void sim_tensor_read(const void* device, void* host, size_t bytes) { memcpy(host, device, bytes); }
int sim_configure(const char* key, const char*) { return strcmp(key, "nonsense") == 0 ? -1 : 0; }
const char* sim_report(void) { return "{}"; }
const char* sim_take_output(void) { return ""; }
void sim_reset(void) {}
void sim_expect_output(void*) {}
int sim_writer(const void*, unsigned writer[6]) {
    for (unsigned i = 0; i < 6; ++i) writer[i] = i;
    return 1;
}
const char* sim_cudaGetErrorName(int) { return "cudaErrorInvalidConfiguration"; }
const char* sim_cudaGetErrorString(int) { return "invalid configuration argument"; }
}
