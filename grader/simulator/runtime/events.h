// Events that the runtime reports to the checks, which implement these functions.
//
// Events of a launch are reported only if `launch.checks_enabled`, those of a block only if `block.checked`; errors
// (sync_error, fault, refused) and memory events are always reported. Unless a comment says otherwise, they are called
// on the fiber of the thread that caused them, and an implementation may call kill_launch there.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/atomics.h"
#include "sim/device.h"
#include "sim/wgmma.h"
#include "tensor_type.h"
#include "thread.h"

namespace sim {
struct BulkCopy;
struct TensorOperation;
struct Work;
}  // namespace sim

namespace sim::events {

// --- the order of operations --- Begins an operation of a stream. The next launch, or accesses by a copy or fill,
// belong to the operation until work_end(). If `host_function` is true, accesses by host code in between belong to the
// operation, too.
void work_begin(const Work& work, bool host_function);
void work_end();
// The host has submitted an operation to a stream that is not being captured, or has launched a graph. Only counts it.
void submitted();
void graph_instantiated();

// --- blocks on several workers (runtime/block_order.h) ---
// Returns why a launch that has not begun needs one worker with checks, or null if it may have several.
const char* needs_one_worker(const Launch& launch);
// A launch that was planned for several workers continues with one. Only its first cluster has started.
void fall_back_to_one_worker();
// Called instead of launch_end for a launch that is rolled back. Runs on the host's stack.
void launch_rolled_back();

// --- the life of a grid (launch_* on the host's stack; block_* on a worker's) ---
void launch_begin(Launch& launch);
void launch_end(Launch& launch);
void block_begin(Block& block);
void block_end(Block& block);
void thread_exit(Thread& thread);

// --- synchronization ---
// All participating threads have arrived. Called once, by the last of them, before any continues. participants[w] is
// the lane mask of warp w. `barrier` is 0 for __syncthreads.
void barrier(Block& block, unsigned barrier, const unsigned* participants);
// One thread's bar.arrive: the thread does not wait, but its earlier accesses are ordered before those of waiting
// threads.
void barrier_arrive(Thread& thread, unsigned barrier);
// Lanes of a warp have executed a warp intrinsic together. `orders_memory`: it was __syncwarp, which orders memory among
// them.
void warp_collective(Warp& warp, unsigned participants, bool orders_memory);
// A warp executes an mma on the tensor cores. `operations` counts additions and multiplications. `address` is the
// kernel's return address.
void tensor_core_mma(TensorType type, unsigned operations, const void* address);
// The start of a wgmma by a warpgroup. From now on the hardware may read its operands in shared memory.
struct WgmmaIssue {
    Wgmma kind;
    uint64_t a, b;    // matrix descriptors
    uint64_t number;  // number of the wgmma in its warpgroup, from 1
    const void* address;
};
void wgmma_issued(Warp* warps, const WgmmaIssue& wgmma_issued);
// The warp has waited for all wgmma up to this number. Its accumulators are not updated yet.
void wgmma_done(Warp& warp, uint64_t number);
void wgmma_fenced(Warp& warp);
// `variables` are the accumulators of a wgmma. accumulators_pending is called before the first wgmma uses them,
// accumulators_ready when the results are available.
void accumulators_pending(Thread& thread, uint32_t* const* variables, unsigned count);
void accumulators_ready(Thread& thread, uint32_t* const* variables, unsigned count);
// Called when the block ended although the warp has not waited for a wgmma.
void wgmma_at_exit(Warp& warp, const void* address);
// Tensor memory (runtime/tensor_memory.h). From now on the block owns these columns. tcgen05.alloc writes their address
// to shared memory at `address_goes_to`.
void tensor_allocated(Thread& thread, const void* address_goes_to, unsigned first, unsigned count);
void tensor_released(Thread& thread, unsigned first, unsigned count);
// A rectangle of lanes and columns of tensor memory.
struct TensorRange {
    unsigned lane, lanes, column, columns;
};
// tensor_access: tcgen05.ld or tcgen05.st begins. tensor_waited: tcgen05.wait::ld or ::st has completed.
void tensor_transfer(Warp& warp, const TensorRange& range, bool stores, const void* address);
void tensor_waited(Warp& warp, bool stores);
// Variables of the thread that a load will fill: no code may read or write them before the wait.
void tensor_registers_pending(Thread& thread, uint32_t* const* variables, unsigned count);
void tensor_registers_ready(Thread& thread, uint32_t* const* variables, unsigned count);
// tcgen05.mma or tcgen05.cp begins.
void tensor_operation(Thread& thread, const TensorOperation& operation);
// Operation `number` will arrive at the mbarrier when all tensor operations that the thread has started are complete.
void tensor_committed(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address);
// The thread executes tcgen05.fence::before_thread_sync or, if `after` is true, tcgen05.fence::after_thread_sync.
void tensor_fence(Thread& thread, bool after);
// griddepcontrol.wait: the previous launch in the stream is complete and visible to the thread from here on.
void grid_dependency_waited(Thread& thread);
// All threads of the grid have arrived.
void grid_sync();

// The cluster barrier. cluster_arrive: one thread arrives. With `releases`, the arrival releases all earlier accesses
// of the thread. Otherwise (barrier.cluster.arrive.relaxed), it releases only accesses before the thread's fences.
// cluster_complete: all threads have arrived, called on the fiber of the last one. cluster_waited: one thread has
// waited.
void cluster_arrive(Thread& thread, bool releases);
void cluster_complete(Cluster& cluster);
void cluster_waited(Thread& thread);

// Called before an atomic operation. `address` is the return address of the call in the kernel.
void atomic(Thread& thread, const void* data, size_t bytes, AtomicOp op, Scope scope, const void* address);
// Called after an atomic operation. `stored`: the operation wrote to memory (a load or a failed compare-and-swap does
// not). `changed`: the value in memory differs from the value before.
void atomic_done(Thread& thread, const void* data, AtomicOp op, Scope scope, MemoryOrder order, bool stored,
                 bool changed);
// Called before a load that requires its memory to be read-only while the kernel runs (__ldg, ld.global.nc).
void read_only_load(Thread& thread, const void* data, size_t bytes, const void* address);
void fence(Thread& thread, Scope scope, MemoryOrder order = MemoryOrder::acq_rel);

// Asynchronous operations (runtime/async_operations.h). `address` is the kernel's return address.
void async_copy(Thread& thread, void* shared, const void* global, size_t bytes, size_t zero_fill, CacheOperator cache,
                const void* address);
void async_commit(Thread& thread);
// The copies that this wait completes, oldest first, are about to be performed.
void async_wait(Thread& thread, unsigned groups_that_may_be_pending);
// A bulk copy begins: from shared to global memory in a group of the thread, or to shared memory with an mbarrier.
void bulk_store(Thread& thread, const BulkCopy& copy, const void* address);
void bulk_commit(Thread& thread);
void bulk_wait(Thread& thread, unsigned groups_that_may_be_pending, bool reads_only);
// `reads`: the copy reads its source. False for a value in registers, and for the further copies of a multicast.
void bulk_load(Thread& thread, const BulkCopy& copy, bool reads, Mbarrier& barrier, uint64_t number,
               const void* address);
// cp.async.mbarrier.arrive: the thread's earlier cp.async will arrive at the mbarrier.
void async_arrive(Thread& thread, Mbarrier& barrier, uint64_t number, const void* address);
// The operation with that number has been performed. Not called on a fiber of its thread.
void mbarrier_operation_done(Thread& thread, Mbarrier& barrier, uint64_t number);
void mbarrier_begin(Thread& thread, Mbarrier& barrier, const void* address);
// The mbarrier ends: by mbarrier.inval, or with a null thread because its block has ended.
void mbarrier_end(Thread* thread, Mbarrier& barrier, const void* address);
// Called before a thread arrives at the mbarrier, expects bytes or completes bytes. `releases`: threads that wait are
// ordered after the thread's earlier accesses.
void mbarrier_arrive(Thread& thread, Mbarrier& barrier, bool releases, const void* address);
void mbarrier_complete(Mbarrier& barrier);                     // a phase completes; not called on the fiber of a thread
void mbarrier_waits(Thread& thread, const Mbarrier& barrier);  // the thread starts or continues to wait
void mbarrier_waited(Thread& thread, Mbarrier& barrier, bool acquires);  // the thread has found a phase complete
void proxy_fence(Thread& thread);
// All threads of the block have exited; operations in flight are about to be performed.
void copies_at_exit(Block& block);

// --- errors that the runtime itself detects ---
enum class SyncError : uint8_t {
    deadlock,  // no thread can run; thread is null, and wait_* and call_address of waiting threads give the place
    barrier_sites_differ,  // threads synchronized at different __syncthreads calls
    own_lane_not_in_mask,
    collectives_differ,  // lanes of one mask synchronized at different intrinsics or calls
    // a shuffle reads from a lane that does not participate; harmless if the value is not used
    shuffle_from_inactive_lane,
    barrier_threads_invalid,  // bar.sync with a count that is not a multiple of 32 or exceeds the block
    grid_sync_not_cooperative,
    mbarrier_not_initialized,
    instruction_misused,  // PTX leaves the result undefined; the detail says why
};
void sync_error(SyncError kind, Block& block, Thread* thread, const char* detail);

// A thread frees a pointer that the device heap did not return, or that was freed already.
void bad_free(const void* pointer, const void* address);

enum class FaultKind : uint8_t {
    illegal_address,
    misaligned_address,
    division_by_zero,
    illegal_instruction,
    stack_overflow,
    infinite_loop,
    out_of_memory,  // the simulator itself cannot get memory
    trap,
    assertion,
    shared_memory_exceeded,  // static arrays above 48 KB, or static + dynamic above the allowed size
    device_exception,        // a C++ exception left the kernel
    missing_return,          // a function with a result reached its closing brace
    local_bounds,            // an access outside a local variable, found by -fsanitize=local-bounds of clang++
};
struct Fault {
    FaultKind kind;
    Thread* thread;       // null if unknown, for an infinite loop
    const void* data;     // the accessed address
    const void* address;  // behind the instruction: the return address of a call, or a byte of the instruction
    const char* detail;   // a sentence, or null
    bool data_known;      // false: the processor did not report the address, because it is misaligned or not canonical
};
// Returns whether a thread that polls this address waits for the host. True for host memory that the launch has not
// changed.
bool waits_for_host(const void* address);
// The launch has failed; launch_end follows. Called on the host's stack.
void fault(Launch& launch, const Fault& fault);

// A launch or a runtime call failed, with CUDA's error and a reason in words. `launch` is null for other calls.
void refused(const Launch* launch, const char* call, int cuda_error, const char* why, const void* address = nullptr);

// A host call waits for an event that was never recorded. This is a finding, because CUDA returns from the call without
// waiting.
void waits_for_unrecorded_event(const char* call, const void* address);

// The sandbox stopped an access or a call of a submission (submission_sandbox/sandbox.h).
void not_its_own(const char* kind, const void* data, size_t bytes, bool write, const void* code);

// Called before an access by host or device code of a kernel file that is not instrumented. The access is made by a
// function of the C library, or by an instruction that the compiler added after the instrumentation. Does nothing if
// the thread's last hook has reported the access.
void late_access(const void* data, size_t bytes, bool write, const void* code);

// The launcher submitted work to the default stream, although the caller passed another stream.
void default_stream_used(const char* what, const void* address);

// --- memory ---
enum class MemoryKind : uint8_t { tensor, device, async, managed, pinned_host, heap };
struct Allocation {
    MemoryKind kind;
    char* base;
    size_t bytes;
    const char* name;   // name of the tensor; null for other memory
    const char* dtype;  // element type of the tensor, such as "float32"; null for other memory
    int ndim;
    const int64_t* shape;
    const void* address;  // the address of the cudaMalloc call
};
void allocation(const Allocation& allocation);
void release(void* base, const void* address);
// Called when the host wrote device memory (cudaMemset, cudaMemcpy, sim_tensor_write).
void host_write(const void* data, size_t bytes);
void host_read(const void* data, size_t bytes);
// A copy in a stream wrote to host memory that is not pinned.
void copied_to_host(const void* data, size_t bytes);
// Called before cudaMemcpy or a related call copies, in any direction.
void host_copy(const void* to, const void* from, size_t bytes);
// Called before cudaMemset or a related call writes.
void host_fill(const void* to, size_t bytes);
void expect_output(void* base);
void read_only(void* base);  // kernels receive the tensor as a pointer to const
// A static array of the block was placed: called once per launch and array. For the dynamic buffer, slot is null.
void shared_array(const void* slot, size_t offset, size_t bytes, const char* name);

// --- the C interface ---
void reset();
// returns 0 if the checks know the key and the value is valid, else -1
int configure(const char* key, const char* value);
const char* report();
int writer(const void* data, unsigned writer[6]);

}  // namespace sim::events
