// Weak events that do nothing: libsim without checks. At link time the checks' definitions replace them.
#include "events.h"

#define WEAK __attribute__((weak))

namespace sim::events {

WEAK void work_begin(const Work&, bool) {}
WEAK void work_end() {}
WEAK void submitted() {}
WEAK void graph_instantiated() {}
WEAK const char* needs_one_worker(const Launch&) { return nullptr; }
WEAK void fall_back_to_one_worker(Launch&) {}
WEAK void launch_rolled_back(Launch&) {}
WEAK void launch_begin(Launch&) {}
WEAK void launch_end(Launch&) {}
WEAK void block_begin(Block&) {}
WEAK void block_end(Block&) {}
WEAK void thread_begin(Thread&) {}
WEAK void thread_exit(Thread&) {}
WEAK void barrier(Block&, unsigned, const unsigned*) {}
WEAK void barrier_arrive(Thread&, unsigned) {}
WEAK void syncwarp(Warp&, unsigned, unsigned) {}
WEAK void warp_collective(Warp&, Wait, unsigned, unsigned) {}
WEAK void tensor_core_mma(Warp&, TensorType, unsigned, const void*) {}
WEAK void wgmma_issued(Warp*, const WgmmaIssue&) {}
WEAK void wgmma_done(Warp&, uint64_t) {}
WEAK void wgmma_fenced(Warp&) {}
WEAK void accumulators_pending(Thread&, uint32_t* const*, unsigned) {}
WEAK void accumulators_ready(Thread&, uint32_t* const*, unsigned) {}
WEAK void wgmma_at_exit(Warp&, const void*) {}
WEAK void tensor_allocated(Thread&, const void*, unsigned, unsigned) {}
WEAK void tensor_released(Thread&, unsigned, unsigned) {}
WEAK void tensor_transfer(Warp&, const TensorRange&, bool, const void*) {}
WEAK void tensor_waited(Warp&, bool) {}
WEAK void tensor_registers_pending(Thread&, uint32_t* const*, unsigned) {}
WEAK void tensor_registers_ready(Thread&, uint32_t* const*, unsigned) {}
WEAK void tensor_operation(Thread&, const TensorOperation&) {}
WEAK void tensor_committed(Thread&, Mbarrier&, uint64_t, const void*) {}
WEAK void tensor_fence(Thread&, bool) {}
WEAK void grid_dependency_waited(Thread&) {}
WEAK void grid_sync(Launch&) {}
WEAK void cluster_arrive(Thread&, bool) {}
WEAK void cluster_complete(Cluster&) {}
WEAK void cluster_waited(Thread&) {}
WEAK void atomic(Thread&, const void*, size_t, AtomicOp, Scope, const void*) {}
WEAK void atomic_done(Thread&, const void*, AtomicOp, Scope, MemoryOrder, bool, bool) {}
WEAK void read_only_load(Thread&, const void*, size_t, const void*) {}
WEAK void fence(Thread&, Scope, MemoryOrder) {}
WEAK void async_copy(Thread&, void*, const void*, size_t, size_t, const void*) {}
WEAK void async_commit(Thread&) {}
WEAK void async_wait(Thread&, unsigned) {}
WEAK void bulk_store(Thread&, const BulkCopy&, const void*) {}
WEAK void bulk_commit(Thread&) {}
WEAK void bulk_wait(Thread&, unsigned, bool) {}
WEAK void bulk_load(Thread&, const BulkCopy&, bool, Mbarrier&, uint64_t, const void*) {}
WEAK void async_arrive(Thread&, Mbarrier&, uint64_t, const void*) {}
WEAK void mbarrier_operation_done(Thread&, Mbarrier&, uint64_t) {}
WEAK void mbarrier_begin(Thread&, Mbarrier&, const void*) {}
WEAK void mbarrier_end(Thread*, Mbarrier&, const void*) {}
WEAK void mbarrier_arrive(Thread&, Mbarrier&, bool, const void*) {}
WEAK void mbarrier_complete(Mbarrier&) {}
WEAK void mbarrier_waits(Thread&, const Mbarrier&) {}
WEAK void mbarrier_waited(Thread&, Mbarrier&, bool) {}
WEAK void proxy_fence(Thread&) {}
WEAK void copies_at_exit(Block&) {}
WEAK void sync_error(SyncError, Block&, Thread*, const char*) {}
WEAK void fault(Launch&, const Fault&) {}
WEAK void refused(const Launch*, const char*, int, const char*, const void*) {}
WEAK void bad_free(const void*, const void*) {}
WEAK bool waits_for_host(const void*) { return false; }
WEAK void waits_for_unrecorded_event(const char*, const void*) {}
WEAK void late_access(const void*, size_t, bool, const void*) {}
WEAK void not_its_own(const char*, const void*, size_t, bool, const void*) {}
WEAK void default_stream_used(const char*, const void*) {}
WEAK void allocation(const Allocation&) {}
WEAK void release(void*, size_t, const void*) {}
WEAK void host_write(const void*, size_t) {}
WEAK void host_read(const void*, size_t) {}
WEAK void copied_to_host(const void*, size_t) {}
WEAK void host_copy(const void*, const void*, size_t) {}
WEAK void host_fill(const void*, size_t) {}
WEAK void expect_output(void*) {}
WEAK void read_only(void*) {}
WEAK void shared_array(Launch&, const void*, size_t, size_t, const char*) {}
WEAK void reset() {}
WEAK int configure(const char*, const char*) { return -1; }
WEAK const char* report() { return "{}"; }
WEAK int writer(const void*, unsigned*) { return 0; }

}  // namespace sim::events
