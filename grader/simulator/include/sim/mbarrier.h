// mbarriers (barriers that are objects in shared memory, of threads and of asynchronous copies), bulk copies, and the
// fence between ordinary accesses and those of the copy engine.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

// How a thread arrives: whether what it did before is ordered before those who wait, and whether it leaves for good.
struct Arrival {
    bool releases;
    bool drops;
};

// `object` is 8 bytes of shared memory; for what arrives there, also of another block of the cluster.
void mbarrier_init(Site site, void* object, uint32_t count);
void mbarrier_invalidate(Site site, void* object);
// Expects `bytes` more, then counts `count` arrivals. The state before: what mbarrier_test and pending_count take.
uint64_t mbarrier_arrive(Site site, void* object, Arrival arrival, uint32_t count, uint32_t bytes);
void mbarrier_expect_bytes(Site site, void* object, uint32_t bytes);
void mbarrier_complete_bytes(Site site, void* object, uint32_t bytes);
// Whether the phase of a parity (the current or the previous one), or of a state, is complete. Lets others run first if
// not.
bool mbarrier_test_parity(Site site, void* object, uint32_t parity, bool acquires);
bool mbarrier_test_state(Site site, void* object, uint64_t state, bool acquires);
inline uint32_t mbarrier_pending_count(uint64_t state) { return static_cast<uint32_t>(state & 0xfffff); }

// cp.async.mbarrier.arrive: an arrival when all earlier cp.async of the thread are complete. Unless it is one of those
// that the mbarrier counts (.noinc), one more is pending from now on.
void async_copy_arrive(Site site, void* object, bool counted);

// cp.async.bulk: 16-byte multiples, both addresses aligned to 16 bytes.
// `multicast`: the blocks of the cluster, by rank, to which it goes, each at the same place in its shared memory; so does
// the mbarrier. Only where `shared` says without multicast_to.
constexpr uint32_t multicast_to = 1u << 16;     // | mask
constexpr uint32_t barrier_in_pair = 1u << 17;  // instead: to one block, the mbarrier being its own or its neighbor's
void bulk_load(Site site, void* shared, const void* global, uint32_t bytes, void* mbarrier, uint32_t multicast = 0);
// From this block's shared memory to that of a block of the cluster, where the mbarrier is, too.
void shared_copy(Site site, void* shared, const void* from, uint32_t bytes, void* mbarrier);
// st.async: 4, 8 or 16 bytes, to the shared memory of a block of the cluster, where the mbarrier is, too.
void async_store(Site site, void* shared, const void* value, unsigned bytes, void* mbarrier);
void bulk_store(Site site, void* global, const void* shared, uint32_t bytes);
void bulk_commit();
// `reads_only`: waits until the shared memory has been read, not until the global memory is written.
void bulk_wait(unsigned groups_that_may_be_pending, bool reads_only);

// fence.proxy.async: what the thread knows of ordinary writes is visible to bulk copies from here on.
void proxy_fence();

// setmaxnreg, by all 128 threads of a warpgroup, with a count that it may have.
void set_max_registers(Site site, uint32_t count);

}  // namespace sim
#pragma GCC visibility pop
