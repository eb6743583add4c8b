#include "sandbox.h"

#include <cxxabi.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>

#include "runtime/arena.h"
#include "runtime/events.h"
#include "runtime/faults.h"
#include "runtime/fiber.h"
#include "runtime/growable.h"
#include "runtime/last_error.h"
#include "runtime/registry.h"
#include "sim/error_codes.h"
#include "sim/shared.h"
#include "runtime/thread.h"

namespace sim::sandbox {

bool confined = false;
Range exception = {};

namespace {

Range variables = {};  // writable segment of the submission's library, without RELRO
Range image = {};      // the whole library
Range tables = {};     // RELRO segment of the library, which holds addresses of functions
const void* lent = nullptr;
// The stack of the thread that calls launchers, as far as the submission may use it: the addresses below the frame of
// the function that loads the submission.
Range host_stack = {};
Range thread_local_ = {};  // thread-local variables of the submission

jmp_buf landing;
bool in_call = false;
int call_result = 0;

uintptr_t as_number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The segments of the library that holds an address.
struct Parts {
    uintptr_t address;
    Range image, writable, relro, thread_local_;
    bool address_writable;
};

int visit_library(dl_phdr_info* info, size_t, void* context) {
    Parts& parts = *static_cast<Parts*>(context);
    Parts found = {parts.address, {}, {}, {}, {}, false};
    bool here = false;
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & header = info->dlpi_phdr[i];
        Range range = {info->dlpi_addr + header.p_vaddr, header.p_memsz};
        if (header.p_type == PT_TLS && info->dlpi_tls_data)
            found.thread_local_ = {as_number(info->dlpi_tls_data), header.p_memsz};
        if (header.p_type == PT_GNU_RELRO) found.relro = range;
        if (header.p_type != PT_LOAD) continue;
        if (!found.image.bytes) found.image.base = range.base;
        found.image.bytes = range.base + range.bytes - found.image.base;
        if (header.p_flags & PF_W) found.writable = range;
        if (!range.contains(parts.address, 1)) continue;
        here = true;
        found.address_writable = (header.p_flags & PF_W) != 0;
    }
    if (!here) return 0;
    // The loader has made the RELRO pages read-only, so remove them from the writable segment.
    uintptr_t end = found.relro.base + found.relro.bytes;
    if (found.relro.bytes && end > found.writable.base) {
        size_t gone = end - found.writable.base;
        found.writable = {end, gone < found.writable.bytes ? found.writable.bytes - gone : 0};
        if (parts.address < end) found.address_writable = false;
    }
    parts = found;
    return 1;
}

bool find_parts(const void* address, Parts& parts) {
    parts = {as_number(address), {}, {}, {}, {}, false};
    return dl_iterate_phdr(visit_library, &parts) != 0;
}

bool is_own_code(const void* code) { return image.contains(as_number(code), 1); }

// Sets the submission's library at the first call from a library other than libsim.
void know_library(const void* code) {
    if (image.bytes) return;
    Parts parts;
    if (!find_parts(code, parts) || parts.image.contains(as_number(&confined), 1)) return;
    image = parts.image;
    variables = parts.writable;
    tables = parts.relro;
    set_callable(image.base, image.bytes);
    keep_place_of_program(const_cast<void*>(code));
}

bool is_stack(uintptr_t address) {
    if (const Thread* thread = current_thread) {
        const Fiber& fiber = *thread->fiber;
        return address - as_number(fiber.low) < static_cast<size_t>(fiber.top - fiber.low);
    }
    return host_stack.contains(address, 1);
}

// Returns whether a place on the stack is a local variable of one of the submission's functions. Each function stores
// its return address and its caller's frame pointer at the end of its frame. Those may not be written, nor may frames
// of other libraries.
bool is_own_local(uintptr_t address, size_t bytes, void* const* frame) {
    while (as_number(frame) < address) {
        uintptr_t begin = as_number(frame + 2);
        const void* code = frame[1];
        auto* next = static_cast<void* const*>(frame[0]);
        if (next <= frame || !is_stack(as_number(next))) return false;
        if (address >= begin && address + bytes <= as_number(next)) return is_own_code(code);
        if (address < as_number(next)) return false;
        frame = next;
    }
    return false;
}

// Returns whether the bytes are thread-local variables of the submission. The loader places these at their first use.
bool is_thread_local(uintptr_t address, size_t bytes) {
    if (!thread_local_.bytes) {
        Parts parts;
        if (find_parts(reinterpret_cast<const void*>(image.base), parts)) thread_local_ = parts.thread_local_;
    }
    return thread_local_.contains(address, bytes);
}

// --- the pool for new and malloc: blocks of powers of two, with lists of free blocks ---
constexpr size_t pool_bytes = size_t(512) << 20;
constexpr unsigned least_log2 = 5, max_log2 = 29;
pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
Range pool = {};
size_t pool_used = 0;
Growable<void*> free_blocks[max_log2 + 1];
struct Block_ {
    uintptr_t base;
    unsigned log2;
};
Growable<Block_> blocks;  // sorted by address; blocks never move. Outside the submission's writable memory

bool make_pool() {
    if (pool.bytes) return true;
    void* base = mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    pool = {as_number(base), pool_bytes};
    return true;
}

const Block_* find_block(const void* pointer) {
    uintptr_t address = as_number(pointer);
    size_t low = partition_point(blocks.size(), [=](size_t i) { return blocks[i].base < address; });
    return low < blocks.size() && blocks[low].base == address ? &blocks[low] : nullptr;
}

// Ends the process after a forbidden access or call by a constructor of the submission. Constructors run while the
// library is loaded, when no report can be written yet.
[[noreturn]] void end_process(const char* what) {
    fprintf(stdout, "stopped: %s\n", what);
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    _exit(1);
}

[[noreturn]] void stop(const void* data, size_t bytes, bool write, const void* code, const char* kind) {
    bool reports = in_call || current_thread;
    if (reports) events::not_its_own(kind, data, bytes, write, code);
    if (current_thread) kill_launch(cudaErrorIllegalAddress);
    if (!in_call)
        end_process("code that runs while the kernel is loaded accesses memory that does not belong to the submission");
    set_fault(cudaErrorIllegalAddress);
    longjmp(landing, 1);
}

// Returns whether host code accesses memory that only kernels and the runtime may: device memory, or a device variable
// under its device address.
bool is_of_device(const void* data, size_t bytes) {
    if (current_thread || !in_call || !bytes) return false;
    const void* last = static_cast<const char*>(data) + bytes - 1;
    if (arena::is_closed(data) || arena::is_closed(last)) return true;
    GlobalVariable variable;
    return find_global(data, &variable) || find_global(last, &variable);
}

// Handles an access to closed device memory that no check preceded: the C library accessed it for the submission.
void on_fault(int signal, siginfo_t* info, void* context) {
    if (in_call && !current_thread && arena::is_closed(info->si_addr))
        stop(info->si_addr, 1, was_write(context),
             places_in_program(context, host_stack.base + host_stack.bytes).address[0], "host_access");
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);  // the instruction faults again
}

bool readable(uintptr_t address, size_t bytes) {
    if (image.contains(address, bytes) || is_stack(address)) return true;
    if (address == as_number(&stdout) || address == as_number(&stderr)) return true;
    // The submission may read constants of other libraries, that is, memory that is not writable.
    Parts parts;
    return find_parts(reinterpret_cast<const void*>(address), parts) && !parts.address_writable;
}

}  // namespace

bool writable(const void* data, size_t bytes, void* const* frame) {
    uintptr_t address = as_number(data);
    if (variables.contains(address, bytes) || pool.contains(address, bytes)) return true;
    ArenaRange arena = arena_range();
    if (arena.base && Range{as_number(arena.base), arena.bytes}.contains(address, bytes)) return true;
    if (Range{host_names_base, host_names_bytes}.contains(address, bytes)) return true;
    if (is_stack(address)) return is_own_local(address, bytes, frame);
    if (Thread* thread = current_thread) {
        const void* last = static_cast<const char*>(data) + bytes - 1;
        return shared_owner(*thread->block, data) &&
               shared_owner(*thread->block, data) == shared_owner(*thread->block, last);
    }
    return exception.contains(address, bytes) || is_thread_local(address, bytes);
}

void check(const void* data, size_t bytes, bool write, const void* code, void* const* frame) {
    know_library(code);
    if (is_of_device(data, bytes)) stop(data, bytes, write, code, "host_access");
    if (writable(data, bytes, frame) || bytes == 0) return;
    if (!write && readable(as_number(data), bytes)) return;
    stop(data, bytes, write, code, is_stack(as_number(data)) ? "not_its_stack" : "not_its_memory");
}

void refuse(const void* data, const void* code) { stop(data, 1, true, code, "not_its_memory"); }

void check_stack(const void* data, size_t bytes, const void* code, void* const* frame) {
    know_library(code);
    if (!is_own_local(as_number(data), bytes, frame)) stop(data, bytes, true, code, "not_its_stack");
}

void check_function(const void* function, const void* code) {
    if (!confined) return;
    know_library(code);
    if (!is_own_code(code)) return;  // the simulator itself made the call
    if (!is_own_code(function)) stop(function, 0, false, code, "not_its_function");
}

void check_callable(const void* function, const void* code) {
    constexpr unsigned char beginning[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
    know_library(code);
    if (is_own_code(function) && memcmp(function, beginning, sizeof beginning) == 0) return;
    auto* word = reinterpret_cast<const void* const*>(tables.base);
    for (size_t i = 0; i < tables.bytes / sizeof *word; ++i)
        if (word[i] == function) return;
    if (function != lent) stop(function, 0, false, code, "not_its_function");
}

void lend(const void* function) { lent = function; }

void check_variable(const void* data, size_t bytes, const void* code) {
    if (!confined) return;
    know_library(code);
    if (!image.contains(as_number(data), bytes)) stop(data, bytes, true, code, "not_its_memory");
}

void* allocate(size_t bytes, size_t alignment) {
    if (alignment > bytes) bytes = alignment;
    unsigned log2 = least_log2;
    while (log2 <= max_log2 && (size_t(1) << log2) < bytes) ++log2;
    if (log2 > max_log2) return nullptr;
    size_t size = size_t(1) << log2;
    MutexLock guard(pool_lock);
    if (Growable<void*>& unused = free_blocks[log2]; !unused.empty()) {
        void* given = unused.back();
        unused.truncate(unused.size() - 1);
        return given;
    }
    if (!make_pool()) return nullptr;
    // A block is aligned to its size, up to the page size.
    size_t multiple = size < 4096 ? size : 4096;
    if (alignment > multiple) multiple = alignment;
    size_t begin = (pool_used + multiple - 1) / multiple * multiple;
    if (begin + size > pool.bytes) return nullptr;
    pool_used = begin + size;
    blocks.push({pool.base + begin, log2});
    return reinterpret_cast<void*>(pool.base + begin);
}

bool release(void* pointer) {
    MutexLock guard(pool_lock);
    const Block_* block = find_block(pointer);
    if (block) free_blocks[block->log2].push(pointer);
    return block;
}

// Tells the compiler that a call of the submission changes all callee-saved registers. The calling convention requires
// that a function restores them, but a submission may violate this.
#if defined(__x86_64__)
#define FORGET_REGISTERS() asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory")
#elif defined(__aarch64__)
#define FORGET_REGISTERS() \
    asm volatile("" ::: "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "memory")
#else
#define FORGET_REGISTERS() asm volatile("" ::: "memory")
#endif

int call(int (*thunk)(void**), void** arguments) {
    in_call = confined;
    if (confined) {
        know_library(reinterpret_cast<const void*>(thunk));
        arena::close_device_memory();
    }
    if (setjmp(landing) == 0)
        call_result = thunk(arguments);
    else
        call_result = cudaErrorIllegalAddress;
    FORGET_REGISTERS();
    if (confined) arena::open_device_memory();
    in_call = false;
    return call_result;
}

}  // namespace sim::sandbox

using namespace sim;

extern "C" {

// Activates the sandbox. The caller must then load and call the submission from the same thread, deeper in the stack.
__attribute__((visibility("default"))) void sim_confine() {
    constexpr size_t most = 8 << 20;
    sandbox::host_stack = {sandbox::as_number(SIM_FRAME) - most, most};
    sandbox::confined = true;
    sandbox::set_callable(1, 0);  // no callable range until the library is known
    struct sigaction action = {};
    action.sa_sigaction = sandbox::on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler exits by a jump, so the signal must not stay blocked
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}

__attribute__((visibility("default"))) int sim_call(int (*thunk)(void**), void** arguments) {
    return sandbox::call(thunk, arguments);
}

}  // extern "C"
