// The library of a fake submission, which contains every kind of memory and function.
#include <string.h>

#include "submission.h"

namespace {
long variable[4] = {1, 2, 3, 4};
const long constant[2] = {5, 6};
thread_local long of_the_thread[2];
size_t (*const bound)(const char*) = strlen;  // the loader writes this address, in memory that is read-only afterwards

__attribute__((noinline)) void own_function(void*) {}
__attribute__((noinline)) void with_local(void (*inner)(void*), void (*deeper)(void*, void (*)(void*)), void* address) {
    volatile long local[4] = {};
    *static_cast<volatile long**>(address) = local;
    if (deeper)
        deeper(address, inner);
    else
        inner(address);
    local[0] = 1;
}
}  // namespace

extern "C" void submission_parts(Parts* parts) {
    of_the_thread[0] = 1;
    *parts = {variable,
              constant,
              of_the_thread,
              &bound,
              reinterpret_cast<const void*>(bound),
              reinterpret_cast<const void*>(&own_function),
              with_local};
}
