// Other operations of a running thread: clocks, traps, sleeping, and asynchronous copies.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
namespace sim {

long long clock_cycles();  // clock64(): nanoseconds of real time, so only differences within one run have a meaning
uint64_t global_timer();   // %globaltimer
void nanosleep(unsigned nanoseconds);
[[noreturn]] void trap();  // __trap()

// The cache operator of cp.async: .ca copies through the L1 cache, .cg (16 bytes only) bypasses it.
enum class CacheOperator : uint8_t { ca, cg };
// The operator that CUDA's functions use: nvcc compiles each copy of 16 bytes by them to cp.async.cg.
constexpr CacheOperator cache_operator(size_t bytes) { return bytes == 16 ? CacheOperator::cg : CacheOperator::ca; }
// cp.async and __pipeline_memcpy_async. The bytes arrive only when the copying thread waits: a kernel that forgets the
// wait reads the old contents. The last `zero_fill` bytes are zeros, not copied.
void async_copy(void* shared, const void* global, size_t bytes, size_t zero_fill, CacheOperator cache);
void async_copy_commit();
void async_copy_wait(unsigned groups_that_may_be_pending);

// Called before a load by __ldg or ld.global.nc, which require their memory to be read-only while the kernel runs.
void read_only_load(const void* address, size_t bytes);

// Tells the scheduler that this thread polls memory that another thread must change.
void spin_hint();

// The front end puts these calls before and after the condition of a loop (grader/frontend/polls.py). A thread that
// polls there is recognized.
void condition_begins();
void condition_ends();

}  // namespace sim
#pragma GCC visibility pop

namespace sim {

#if defined(__SANITIZE_THREAD__)
#define SIM_CHECKED 1
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define SIM_CHECKED 1
#endif
#endif

// Only the checks need the calls. Without them a loop that polls stays in the kernel's own code, where the watchdog can
// interrupt it and find what it polls (runtime/host_poll_detector.h).
struct Polling {
#if defined(SIM_CHECKED)
    Polling() { condition_begins(); }
    ~Polling() { condition_ends(); }
#else
    Polling() {}
#endif
};

}  // namespace sim
