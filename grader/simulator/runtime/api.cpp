// The C interface, for ctypes and for the runner.
#include "api.h"

#include <string.h>

#include "arena.h"
#include "block_order.h"
#include "events.h"
#include "kernels.h"
#include "last_error.h"
#include "output.h"
#include "sampling.h"
#include "settings.h"
#include "streams.h"

using namespace sim;

extern "C" {

void* sim_tensor_alloc(const char* name, const char* dtype, int ndim, const int64_t* shape, size_t bytes,
                       size_t align_offset_bytes) {
    keep_output();
    char* base = arena::allocate(bytes, align_offset_bytes);
    if (base) events::allocation({events::MemoryKind::tensor, base, bytes, name, dtype, ndim, shape, nullptr});
    return base;
}

void sim_tensor_write(void* device, const void* host, size_t bytes) {
    if (bytes) memcpy(device, host, bytes);
    events::host_write(device, bytes);
}

void sim_tensor_read(const void* device, void* host, size_t bytes) {
    if (bytes == 0) return;
    streams::caller_reads(device, bytes);
    memcpy(host, device, bytes);
}

void sim_expect_output(void* device) { events::expect_output(device); }

void sim_tensor_readonly(void* device) { events::read_only(device); }

int sim_configure(const char* key, const char* value) {
    keep_output();
    return configure(key, value);
}

const char* sim_report(void) { return events::report(); }

const char* sim_take_output(void) {
    keep_output();
    return take_output();
}

void sim_reset(void) {
    streams::reset();
    events::reset();
    arena::release_all();
    forget_attributes();
    forget_orders();
    sampling::forget();
    take_output();
    forget_fault();
}

int sim_writer(const void* device, unsigned writer[6]) { return events::writer(device, writer); }

}  // extern "C"
