// The functions that -fsanitize=thread makes the compiler call before each memory access.
//
// They have libtsan's interface and our own implementation; libtsan is never linked. The return address of a hook
// identifies the access in the source.
#include <string.h>

#include "checks/core/access.h"
#include "checks/counting/counting.h"
#include "checks/report/findings.h"
#include "checks/core/hook_names.h"
#include "checks/core/hooks.h"
#include "checks/synchronization/races.h"
#include "checks/synchronization/streams.h"
#include "checks/synchronization/volatiles.h"
#include "runtime/block_order.h"
#include "runtime/host_threads.h"
#include "submission_sandbox/sandbox.h"
#include "sim/copies.h"
#include "sim/shared.h"

namespace sim::checks {

HostView host_view;

namespace {

// Host code accesses its copy of a device variable. Reading the initial value there is allowed.
SIM_NOINLINE void host_name_access(uintptr_t address, unsigned bytes, Access access, const void* code) {
    GlobalVariable variable;
    if (!find_host_name(reinterpret_cast<void*>(address), &variable)) return;
    uintptr_t same =
        reinterpret_cast<uintptr_t>(variable.base) + address - reinterpret_cast<uintptr_t>(variable.on_host);
    bool equal = !memcmp(reinterpret_cast<void*>(address), reinterpret_cast<void*>(same), bytes);
    if (access == Access::read && equal) return;
    Finding finding = new_finding(FindingKind::host_name);
    finding.side.address = code;
    finding.set_access(access, bytes, find_region(same), same);
    finding.payload = Address{address};
    add_finding(finding);
}

// Host code: the launchers in a kernel file are instrumented like the kernels.
SIM_NOINLINE void host_access(uintptr_t address, unsigned bytes, Access access, const void* code) {
    Region* region = find_region(address);
    if (!region) region = nearest_region(address);
    if (region && host_shares(*region)) {
        if (region->contains(address, bytes)) host_touches(*region, address, bytes, access == Access::write, code);
        run_counters.host_bytes += bytes;
        return;
    }
    Finding finding = new_finding(FindingKind::host_access);
    finding.side.address = code;
    finding.set_access(access, bytes, region, address);
    add_finding(finding);
}

// Checks an access by host code, or by a thread of a block without checks.
template <bool Write>
SIM_ALWAYS_INLINE void unchecked_access(const void* data, unsigned bytes, const void* code) {
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    if (sandbox::confined) sandbox::check(data, bytes, Write, code, SIM_FRAME);
    if (current_thread) return;
    if (address - host_view.arena_base < host_view.arena_bytes)
        host_access(address, bytes, Write ? Access::write : Access::read, code);
    else if (SIM_UNLIKELY(address - host_view.copied_base < host_view.copied_bytes))
        host_touches_own(address, bytes, Write, code);
    else if (SIM_UNLIKELY(address - host_names_base < host_names_bytes))
        host_name_access(address, bytes, Write ? Access::write : Access::read, code);
}

template <unsigned SizeLog2, bool Write>
SIM_ALWAYS_INLINE void hook(const void* data, const void* code) {
    ThreadState* state = current_thread ? state_of(*current_thread) : nullptr;
    if (SIM_UNLIKELY(!state)) return unchecked_access<Write>(data, 1u << SizeLog2, code);
    on_access<SizeLog2, Write>(*state, reinterpret_cast<uintptr_t>(data), code);
}

// A hook for less frequent accesses: one function serves all sizes.
template <bool Write>
SIM_NOINLINE void hook_any(const void* data, unsigned size_log2, const void* code) {
    ThreadState* state = current_thread ? state_of(*current_thread) : nullptr;
    if (!state) return unchecked_access<Write>(data, 1u << size_log2, code);
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    state->hooked[Write] = {address, size_t(1) << size_log2};
    AccessSite* site = prepare_and_log(*state, address, Write ? Access::write : Access::read, size_log2, code);
    if (!site || !site->cells) return;
    if (site->guarded)
        access_cells_guarded<Write>(*state, *site, address, size_log2);
    else
        access_cells<Write>(*state, *site, address, size_log2);
}

// Checks any number of bytes, in the largest aligned pieces of at most 1 << widest bytes.
template <bool Write>
void hook_range(const void* data, size_t bytes, const void* code, unsigned widest = 4) {
    each_piece(data, bytes, widest, [code](uintptr_t address, unsigned size_log2) {
        hook_any<Write>(reinterpret_cast<const void*>(address), size_log2, code);
    });
    ThreadState* state = current_thread ? state_of(*current_thread) : nullptr;
    if (state) state->hooked[Write] = {reinterpret_cast<uintptr_t>(data), bytes};
}

// Host threads may synchronize through volatile and atomic variables: a write releases, a read acquires.
template <bool Write>
void host_synchronizes(const void* data) {
    if (Write)
        host_threads::release(data);
    else
        host_threads::acquire_later(data);
}

// In global memory a volatile access counts as relaxed atomic. In shared memory it races like an ordinary access.
template <bool Write>
void hook_volatile(const void* data, unsigned size_log2, const void* code) {
    Thread* thread = current_thread;
    if (!thread) host_synchronizes<Write>(data);
    if (!thread || !state_of(*thread)) return hook_any<Write>(data, size_log2, code);
    if (!Write) {
        thread->call_address = code;  // reported for an endless polling loop
        volatile_read(data, 1u << size_log2);
    }
    ThreadState& state = *state_of(*thread);
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    state.hooked[Write] = {address, size_t(1) << size_log2};
    if (in_shared(*state.block, address)) {
        hook_any<Write>(data, size_log2, code);
    } else {
        in_block_order("its threads use volatile accesses");
        unordered_access(state, address, Write ? Access::volatile_write : Access::volatile_read, size_log2, code,
                         {!Write, Write});
        if (Write)
            note_volatile_write(state, address, 1u << size_log2);
        else
            note_volatile_read(state, address, 1u << size_log2, code);
    }
    if (Write) {
        release(state, data, Scope::system, MemoryOrder::relaxed, true);
        note_change(address);
    } else {
        acquire(state, data);
    }
}

}  // namespace

void note_change(uintptr_t address) {
    if (!host_view.shares) return;
    const Region* region = find_region(address);
    if (!region || !host_shares(*region)) return;
    Locked locked(the_launch.lock);
    the_launch.changed.at(address) = true;
}

void unordered_access(ThreadState& thread, uintptr_t address, Access access, unsigned size_log2, const void* code,
                      AtomicAccess how) {
    AccessSite* site = prepare_and_log(thread, address, access, size_log2, code);
    if (!site || !site->cells) return;
    each_cell(*site, address, size_log2, [&](ShadowCell& cell) { atomic_cell(thread, cell, *site, how); });
}

}  // namespace sim::checks

using namespace sim::checks;

namespace sim {

namespace {

// Ends the launch if the destination is not memory of the submission. It is called in addition to hook_range, because a
// finding of hook_range for one piece of the copy does not always end the kernel.
void is_own(void* to, size_t bytes, const void* code) { sandbox::copies_to(to, bytes, code); }

void copied(void* to, const void* from, size_t bytes, const void* code) {
    hook_range<false>(from, bytes, code);
    hook_range<true>(to, bytes, static_cast<const char*>(code) - 1);
}

}  // namespace

void* checked_memcpy(void* to, const void* from, size_t bytes, const void* code) {
    copied(to, from, bytes, code);
    is_own(to, bytes, code);
    return memcpy(to, from, bytes);
}
void* checked_memmove(void* to, const void* from, size_t bytes, const void* code) {
    copied(to, from, bytes, code);
    is_own(to, bytes, code);
    return memmove(to, from, bytes);
}
void* checked_memset(void* to, int value, size_t bytes, const void* code) {
    hook_range<true>(to, bytes, code);
    is_own(to, bytes, code);
    return memset(to, value, bytes);
}
void* memcpy_here(void* to, const void* from, size_t bytes) {
    return checked_memcpy(to, from, bytes, __builtin_return_address(0));
}
void* memmove_here(void* to, const void* from, size_t bytes) {
    return checked_memmove(to, from, bytes, __builtin_return_address(0));
}
void* memset_here(void* to, int value, size_t bytes) {
    return checked_memset(to, value, bytes, __builtin_return_address(0));
}
void* late_memcpy(void* to, const void* from, size_t bytes, const void* code) {
    events::late_access(from, bytes, false, code);
    events::late_access(to, bytes, true, static_cast<const char*>(code) - 1);
    is_own(to, bytes, code);
    return memcpy(to, from, bytes);
}
void* late_memset(void* to, int value, size_t bytes, const void* code) {
    events::late_access(to, bytes, true, code);
    is_own(to, bytes, code);
    return memset(to, value, bytes);
}

}  // namespace sim

#define CODE __builtin_return_address(0)

#define HOOKS(SIZE, LOG2)                                                                                    \
    HOOK(void, __tsan_read##SIZE)(void* data) { hook<LOG2, false>(data, CODE); }                             \
    HOOK(void, __tsan_write##SIZE)(void* data) { hook<LOG2, true>(data, CODE); }                             \
    HOOK(void, __tsan_unaligned_read##SIZE)(void* data) { hook_range<false>(data, SIZE, CODE); }             \
    HOOK(void, __tsan_unaligned_write##SIZE)(void* data) { hook_range<true>(data, SIZE, CODE); }             \
    HOOK(void, __tsan_volatile_read##SIZE)(void* data) { hook_volatile<false>(data, LOG2, CODE); }           \
    HOOK(void, __tsan_volatile_write##SIZE)(void* data) { hook_volatile<true>(data, LOG2, CODE); }           \
    HOOK(void, __tsan_unaligned_volatile_read##SIZE)(void* data) { hook_volatile<false>(data, LOG2, CODE); } \
    HOOK(void, __tsan_unaligned_volatile_write##SIZE)(void* data) { hook_volatile<true>(data, LOG2, CODE); }

HOOKS(1, 0)
HOOKS(2, 1)
HOOKS(4, 2)
HOOKS(8, 3)
HOOKS(16, 4)

// g++ calls this for structures, except those of 8 and 16 bytes that are aligned as a whole. The pieces have the size
// of the loads that nvcc would emit: it reads a structure like {float, float} member by member. Larger structures are
// usually designed to be read in steps of 16 bytes.
SIM_ALWAYS_INLINE unsigned widest_piece(size_t bytes) { return bytes == 16 || bytes % 16 != 0 ? 2 : 4; }
HOOK(void, __tsan_read_range)(void* data, size_t bytes) { hook_range<false>(data, bytes, CODE, widest_piece(bytes)); }
HOOK(void, __tsan_write_range)(void* data, size_t bytes) { hook_range<true>(data, bytes, CODE, widest_piece(bytes)); }

// clang++ calls these hooks instead of the C functions. Older versions of clang++ call the C functions; sim/copies.h
// handles those calls.
HOOK(void*, __tsan_memcpy)(void* to, const void* from, size_t bytes) {
    return sim::checked_memcpy(to, from, bytes, CODE);
}
HOOK(void*, __tsan_memmove)(void* to, const void* from, size_t bytes) {
    return sim::checked_memmove(to, from, bytes, CODE);
}
HOOK(void*, __tsan_memset)(void* to, int value, size_t bytes) { return sim::checked_memset(to, value, bytes, CODE); }

HOOK(void, __tsan_init)() {}
HOOK(void, __tsan_func_entry)(void*) {}
HOOK(void, __tsan_func_exit)() {}
// The pointer to a class's virtual function table, in an object.
HOOK(void, __tsan_vptr_read)(void* data) { hook<3, false>(data, CODE); }
HOOK(void, __tsan_vptr_update)(void* data, void*) { hook<3, true>(data, CODE); }
HOOK(void, __tsan_ignore_thread_begin)() {}
HOOK(void, __tsan_ignore_thread_end)() {}
HOOK(void, __tsan_atomic_thread_fence)(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HOOK(void, __tsan_atomic_signal_fence)(int) {}

// The compiler's own atomic operations. In a kernel they are checked and counted like CUDA's; host threads synchronize
// through them.
namespace {

using sim::AtomicOp;

template <typename T>
void before_atomic(const volatile T* at, AtomicOp op, const void* code) {
    void* data = const_cast<void*>(static_cast<const volatile void*>(at));
    sim::Thread* thread = sim::current_thread;
    if (thread && state_of(*thread)) {
        sim::in_block_order("its threads use atomic operations");
        sim::events::atomic(*thread, data, sizeof(T), op, sim::Scope::system, code);
        return;
    }
    constexpr unsigned size_log2 = __builtin_ctz(sizeof(T));
    if (op == AtomicOp::load) return hook_any<false>(data, size_log2, code);
    sim::host_threads::release(data);
    hook_any<true>(data, size_log2, code);
}

template <typename T, typename Result>
Result after_atomic(const volatile T* at, AtomicOp op, Result result, bool changed = true) {
    void* data = const_cast<void*>(static_cast<const volatile void*>(at));
    sim::Thread* thread = sim::current_thread;
    const bool stored = op != AtomicOp::load && (changed || op != AtomicOp::compare_and_swap);
    if (!thread)
        sim::host_threads::acquire(data);
    else if (state_of(*thread))
        sim::events::atomic_done(*thread, data, op, sim::Scope::system, sim::MemoryOrder::relaxed, stored, changed);
    return result;
}

// Stores the old value in `expected` if the exchange fails.
template <typename T>
bool compare_exchange(volatile T* at, T* expected, T value, const void* code) {
    before_atomic(at, AtomicOp::compare_and_swap, code);
    bool changed = __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return after_atomic(at, AtomicOp::compare_and_swap, changed, changed);
}

}  // namespace

#define ATOMIC_FETCH(BITS, T, NAME, OPERATION)                                                      \
    HOOK(T, __tsan_atomic##BITS##_fetch_##NAME)(volatile T * a, T v, int) {                         \
        before_atomic(a, AtomicOp::OPERATION, CODE);                                                \
        return after_atomic(a, AtomicOp::OPERATION, __atomic_fetch_##NAME(a, v, __ATOMIC_SEQ_CST)); \
    }
#define ATOMIC_EXCHANGE_IF(BITS, T, KIND)                                                            \
    HOOK(int, __tsan_atomic##BITS##_compare_exchange_##KIND)(volatile T * a, T * e, T v, int, int) { \
        hook_any<false>(e, __builtin_ctz(sizeof(T)), CODE);                                          \
        T expected = *e;                                                                             \
        bool changed = compare_exchange(a, &expected, v, CODE);                                      \
        if (!changed) hook_any<true>(e, __builtin_ctz(sizeof(T)), CODE), *e = expected;              \
        return changed;                                                                              \
    }
#define ATOMIC_HOOKS(BITS, T)                                                                    \
    HOOK(T, __tsan_atomic##BITS##_load)(const volatile T* a, int) {                              \
        before_atomic(a, AtomicOp::load, CODE);                                                  \
        return after_atomic(a, AtomicOp::load, __atomic_load_n(a, __ATOMIC_SEQ_CST), false);     \
    }                                                                                            \
    HOOK(void, __tsan_atomic##BITS##_store)(volatile T * a, T v, int) {                          \
        before_atomic(a, AtomicOp::store, CODE);                                                 \
        __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                \
        after_atomic(a, AtomicOp::store, true);                                                  \
    }                                                                                            \
    HOOK(T, __tsan_atomic##BITS##_exchange)(volatile T * a, T v, int) {                          \
        before_atomic(a, AtomicOp::exchange, CODE);                                              \
        return after_atomic(a, AtomicOp::exchange, __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST)); \
    }                                                                                            \
    ATOMIC_FETCH(BITS, T, add, add)                                                              \
    ATOMIC_FETCH(BITS, T, sub, sub)                                                              \
    ATOMIC_FETCH(BITS, T, and, bit_and)                                                          \
    ATOMIC_FETCH(BITS, T, or, bit_or)                                                            \
    ATOMIC_FETCH(BITS, T, xor, bit_xor)                                                          \
    ATOMIC_EXCHANGE_IF(BITS, T, strong)                                                          \
    ATOMIC_EXCHANGE_IF(BITS, T, weak)                                                            \
    HOOK(T, __tsan_atomic##BITS##_compare_exchange_val)(volatile T * a, T e, T v, int, int) {    \
        compare_exchange(a, &e, v, CODE);                                                        \
        return e;                                                                                \
    }

ATOMIC_HOOKS(8, uint8_t)
ATOMIC_HOOKS(16, uint16_t)
ATOMIC_HOOKS(32, uint32_t)
ATOMIC_HOOKS(64, uint64_t)

namespace sim::events {

namespace {

// Returns whether accesses by host code to this memory must be checked.
bool host_watches(uintptr_t address, size_t bytes) {
    GlobalVariable variable;
    return address - host_view.arena_base < host_view.arena_bytes ||
           address - host_view.copied_base < host_view.copied_bytes || address - host_names_base < host_names_bytes ||
           find_global(reinterpret_cast<void*>(address), &variable) ||
           find_global(reinterpret_cast<void*>(address + bytes - 1), &variable);
}

}  // namespace

void late_access(const void* data, size_t bytes, bool write, const void* code) {
    if (bytes == 0) return;
    auto address = reinterpret_cast<uintptr_t>(data);
    ThreadState* thread = current_thread ? state_of(*current_thread) : nullptr;
    if (!thread || is_local(*thread, address)) {
        if (sandbox::confined) sandbox::check(data, bytes, write, code, SIM_FRAME);
        if (current_thread || !host_watches(address, bytes)) return;
    } else if (thread->hooked[write].contains(address, bytes)) {
        return;
    }
    unsigned widest = widest_piece(bytes);
    write ? hook_range<true>(data, bytes, code, widest) : hook_range<false>(data, bytes, code, widest);
}

}  // namespace sim::events
