#include "host_poll_detector.h"

#include <string.h>

#include "arena.h"
#include "faults.h"

namespace sim {

namespace {

// A thread counts as polling after this many consecutive samples with the same value. Fewer may be chance.
constexpr unsigned certain_samples = 8;

}  // namespace

void sample_next_access() { arena::protect_host_memory(); }

void end_poll_sampling() { arena::unprotect_host_memory(nullptr); }

bool was_poll_sample(int signal, const siginfo_t* info, const void* context) {
    // Several workers may have faulted before the first of them unprotected the memory.
    if (signal != SIGSEGV || info->si_code != SEGV_ACCERR || !arena::unprotect_host_memory(info->si_addr)) return false;
    Thread* thread = current_thread;
    if (!thread) return true;  // host code accessed the memory, not a kernel: repeat the access
    unsigned char value;
    memcpy(&value, info->si_addr, sizeof value);
    bool alike = !was_write(context) && thread->seen == info->si_addr && thread->seen_value == value;
    thread->seen_alike = alike ? thread->seen_alike + 1 : 0;
    thread->seen = info->si_addr;
    thread->seen_value = value;
    return true;
}

bool seen_polling(const Thread& thread) { return thread.seen_alike >= certain_samples; }

}  // namespace sim
