// Atomic operations on every type that CUDA supports.
//
// They use the host's atomic instructions, so blocks may run on several OS threads. An operation that leaves memory
// unchanged may belong to a spin loop (a taken lock, a flag that is not set): after two in a row at one address the
// thread lets others run.
#include "sim/atomics.h"

#include "atomic_results.h"
#include "block_order.h"
#include "sim/barrier.h"
#include "sim/error_codes.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

template <typename Format>
uint32_t small_pair_result(AtomicOp op, uint32_t old, uint32_t operand) {
    uint32_t low = small_result<Format>(op, static_cast<uint16_t>(old), static_cast<uint16_t>(operand));
    uint32_t high = small_result<Format>(op, static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(operand >> 16));
    return low | high << 16;
}

// Called before the operation. Lets the checks test bounds and races, and requires the alignment of the hardware.
void begin(Thread* self, AtomicOp op, void* address, size_t bytes, Scope scope, MemoryOrder order, const void* caller) {
    if (!self) return;
    self->call_address = caller;
    if (self->block->launch->workers > 1 && !shared_owner(*self->block, address))
        in_block_order("its threads use atomic operations");
    if (order != MemoryOrder::relaxed && scope != Scope::block) in_block_order("its threads use acquire and release");
    if (self->block->checked) events::atomic(*self, address, bytes, op, scope, caller);
    if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
        raise_fault(events::FaultKind::misaligned_address, cudaErrorMisalignedAddress, address, caller,
                    "misaligned atomic operation: the address must be a multiple of its size");
    }
}

// Called after the operation. `stored`: it wrote to memory, so it is not a load or a failed compare-and-swap.
void end(Thread* self, AtomicOp op, const void* address, size_t bytes, Scope scope, MemoryOrder order, bool stored,
         bool changed) {
    if (!self) return;
    if (self->block->checked) events::atomic_done(*self, address, op, scope, order, stored, changed);
    if (changed) {
        self->polled = self->watched = nullptr;
        self->stalled = false;
        current_worker->stalled_rounds = 0;
        const bool adds = op == AtomicOp::add || op == AtomicOp::sub || op == AtomicOp::increment;
        if (adds && scope != Scope::block && !shared_owner(*self->block, address)) added_to(*self, address);
    } else {
        self->polls_atomically = true;
        polled(*self, address, static_cast<unsigned>(bytes));
    }
}

template <typename Bits>
Bits apply(AtomicOp op, void* address, Bits operand, Scope scope, MemoryOrder order,
           Bits (*result)(AtomicOp, Bits, Bits), const void* caller) {
    Thread* self = current_thread;
    begin(self, op, address, sizeof(Bits), scope, order, caller);
    auto* memory = static_cast<Bits*>(address);
    Bits old = __atomic_load_n(memory, __ATOMIC_SEQ_CST);
    Bits wanted = result(op, old, operand);
    while (wanted != old &&
           !__atomic_compare_exchange_n(memory, &old, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        wanted = result(op, old, operand);
    }
    end(self, op, address, sizeof(Bits), scope, order, op != AtomicOp::load, wanted != old);
    return old;
}

template <typename Bits>
Bits compare_and_swap(void* address, Bits compare, Bits value, Scope scope, MemoryOrder order, MemoryOrder failure,
                      const void* caller) {
    Thread* self = current_thread;
    begin(self, AtomicOp::compare_and_swap, address, sizeof(Bits), scope, order, caller);
    Bits old = compare;
    bool swapped = __atomic_compare_exchange_n(static_cast<Bits*>(address), &old, value, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
    end(self, AtomicOp::compare_and_swap, address, sizeof(Bits), scope, swapped ? order : failure, swapped,
        swapped && value != compare);
    return old;
}

}  // namespace

#define ATOMIC(T, Bits, name, result)                                                                        \
    T name(AtomicOp op, void* address, T operand, Scope scope, MemoryOrder order) {                          \
        return bit_cast<T>(apply<Bits>(op, address, bit_cast<Bits>(operand), scope, order, result, CALLER)); \
    }
ATOMIC(int32_t, uint32_t, atomic_i32, integer_result<int32_t>)
ATOMIC(uint32_t, uint32_t, atomic_u32, integer_result<uint32_t>)
ATOMIC(int64_t, uint64_t, atomic_i64, integer_result<int64_t>)
ATOMIC(uint64_t, uint64_t, atomic_u64, integer_result<uint64_t>)
ATOMIC(float, uint32_t, atomic_f32, float_result<float>)
ATOMIC(double, uint64_t, atomic_f64, float_result<double>)
ATOMIC(uint16_t, uint16_t, atomic_f16, small_result<F16>)
ATOMIC(uint16_t, uint16_t, atomic_bf16, small_result<BF16>)
ATOMIC(uint32_t, uint32_t, atomic_f16x2, small_pair_result<F16>)
ATOMIC(uint32_t, uint32_t, atomic_bf16x2, small_pair_result<BF16>)

#define COMPARE_AND_SWAP(Bits, name)                                                                          \
    Bits name(void* address, Bits compare, Bits value, Scope scope, MemoryOrder order, MemoryOrder failure) { \
        return compare_and_swap<Bits>(address, compare, value, scope, order, failure, CALLER);                \
    }
COMPARE_AND_SWAP(uint16_t, compare_and_swap_16)
COMPARE_AND_SWAP(uint32_t, compare_and_swap_32)
COMPARE_AND_SWAP(uint64_t, compare_and_swap_64)

void fence(Scope scope, MemoryOrder order) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = CALLER;
    if (scope != Scope::block) in_block_order("its threads use fences");
    if (self->block->checked) events::fence(*self, scope, order);
}

}  // namespace sim
