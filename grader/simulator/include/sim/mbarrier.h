// mbarriers (barrier objects in shared memory for threads and asynchronous copies), bulk copies, and the fence between
// ordinary accesses and the async proxy.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

// The kind of an arrival. `releases`: earlier accesses of the arriving thread are ordered before accesses of waiting
// threads after their wait. `drops`: later phases expect one arrival less (arrive_drop).
struct Arrival {
    bool releases;
    bool drops;
};

// `object` is 8 bytes of shared memory. For arrivals it may be in another block of the cluster.
void mbarrier_init(Site site, void* object, uint32_t count);
void mbarrier_invalidate(Site site, void* object);
// Expects `bytes` more, then counts `count` arrivals. Returns the previous state, for mbarrier_test and pending_count.
uint64_t mbarrier_arrive(Site site, void* object, Arrival arrival, uint32_t count, uint32_t bytes);
void mbarrier_expect_bytes(Site site, void* object, uint32_t bytes);
void mbarrier_complete_bytes(Site site, void* object, uint32_t bytes);
// Returns whether the phase with this parity (the current or the previous one), or with this state, is complete. If it
// is not, other threads run before the function returns.
bool mbarrier_test_parity(Site site, void* object, uint32_t parity, bool acquires);
bool mbarrier_test_state(Site site, void* object, uint64_t state, bool acquires);
inline uint32_t mbarrier_pending_count(uint64_t state) { return static_cast<uint32_t>(state & 0xfffff); }

// cp.async.mbarrier.arrive: arrives at the mbarrier when all earlier cp.async of the thread are complete. If `counted`
// is true (.noinc), the arrival is one of those given to mbarrier.init. Otherwise the pending count is first
// incremented by 1, so the arrival is an additional one.
void async_copy_arrive(Site site, void* object, bool counted);

// cp.async.bulk copies a multiple of 16 bytes between addresses aligned to 16. The argument `multicast` is 0 for a copy
// to the block whose memory `shared` addresses. With multicast_to | mask, the copy goes to each block of the cluster in
// the mask, at the same offset in its shared memory, and completes its bytes on that block's mbarrier.
constexpr uint32_t multicast_to = 1u << 16;
// With the value barrier_in_pair of `multicast`, the copy goes to one block. The mbarrier may be in this block or in
// the other block of its CTA pair.
constexpr uint32_t barrier_in_pair = 1u << 17;
void bulk_load(Site site, void* shared, const void* global, uint32_t bytes, void* mbarrier, uint32_t multicast = 0);
// Copies from this block's shared memory to the shared memory of another block of the cluster. The mbarrier is in the
// destination block.
void shared_copy(Site site, void* shared, const void* from, uint32_t bytes, void* mbarrier);
// st.async stores 4, 8 or 16 bytes to the shared memory of a block of the cluster. The mbarrier is in the same block.
void async_store(Site site, void* shared, const void* value, unsigned bytes, void* mbarrier);
void bulk_store(Site site, void* global, const void* shared, uint32_t bytes);
void bulk_commit();
// `reads_only`: waits until the sources have been read (.read), not until the writes are complete.
void bulk_wait(unsigned groups_that_may_be_pending, bool reads_only);

// fence.proxy.async: bulk copies that start later see the ordinary writes that are ordered before the fence.
void proxy_fence();

// setmaxnreg: sets the register count per thread. All 128 threads of a warpgroup must call it with the same permitted
// count.
void set_max_registers(Site site, uint32_t count);

}  // namespace sim
#pragma GCC visibility pop
