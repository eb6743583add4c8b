// Asynchronous operations, and the mechanisms that complete them:
//
//   CopyGroups   of a thread: cp.async's groups, and the bulk async-groups of stores; it commits them and waits for them
//   Mbarrier     of a block: an object in shared memory that counts arrivals and bytes; any of its threads may wait for a
//                phase, those of its whole cluster may arrive
//
// An operation is performed as late as the program allows: in a group, when its thread waits; on an mbarrier, when no
// thread of the worker can go on otherwise. So a kernel that does not wait reads what was there before.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tensor_map.h"
#include "thread.h"

namespace sim {

struct Worker;

// cp.async's.
struct Copy {
    void* to;
    const void* from;
    unsigned bytes;
    unsigned zero_fill;  // of them, at the end: zeros, not copied
};

// Of Copy, or of BulkCopy.
template <typename Copy>
class CopyGroups {
  public:
    CopyGroups() = default;
    CopyGroups(const CopyGroups&) = delete;
    CopyGroups& operator=(const CopyGroups&) = delete;
    ~CopyGroups();

    bool add(const Copy& copy);    // false: no memory
    void commit() { ++group_; }    // an empty group counts, too
    void wait(unsigned may_pend);  // performs all committed groups but the youngest few
    uint64_t added() const { return performed_ + count_ - first_; }
    void perform_until(uint64_t added);  // what had been added then

  private:
    struct Entry {
        Copy copy;
        unsigned group;
    };
    void perform_first();

    Entry* entries_ = nullptr;
    unsigned first_ = 0, count_ = 0, capacity_ = 0;  // entries_[first_, count_) are pending
    unsigned group_ = 0;                             // the one being filled; older ones are committed
    uint64_t performed_ = 0;
};

// What a thread has under way.
struct AsyncCopies {
    CopyGroups<Copy> copies;           // cp.async
    CopyGroups<BulkCopy> bulk_stores;  // cp.async.bulk from shared to global memory
};

// An object of mbarrier.init. PTX: a phase is complete when no arrival is pending and no byte is expected any more.
struct Mbarrier {
    char* object;  // in shared memory
    Block* block;  // whose that is
    uint32_t phase;
    uint32_t expected;    // arrivals of each phase
    uint32_t pending;     // arrivals missing from the current one
    int32_t bytes;        // that are to arrive in it: the tx-count
    unsigned operations;  // under way that will come here
    void* checks;
    Mbarrier* next;
};

// On its way to an mbarrier: a bulk copy, a store of st.async, or the arrival of a thread's earlier cp.async.
struct MbarrierOperation {
    BulkCopy copy;
    uint64_t value[2];  // that st.async stores: the source of its copy
    Mbarrier* barrier;
    Thread* thread;  // that started it, and where
    Site site;
    const void* address;
    bool is_arrival;
    uint64_t copies;  // of an arrival: cp.async that it waits for
    uint64_t number;
    MbarrierOperation* next;
    Block*
        tensor;  // of tcgen05.commit: whose tensor operations must be performed, up to the number `copies`; else null
};

// A copy from global memory to shared memory of a block of the cluster begins; its bytes arrive at the mbarrier. `multicast`:
// as of bulk_load (sim/mbarrier.h).
void start_load(Thread& self, Site site, const BulkCopy& copy, const void* mbarrier, uint32_t multicast = 0);
// tcgen05.commit: an arrival when all that the block's tensor cores have been asked for is complete. `multicast`: as above.
void start_commit(Thread& self, Site site, void* mbarrier, uint32_t multicast);
// A copy to global memory begins, in the bulk group that the running thread is filling.
void start_store(Thread& self, const BulkCopy& copy);

// Performs operations that are under way until a phase of an mbarrier is complete. False when nothing was under way.
bool perform_operations(Worker& worker);
// The block has ended: what is still under way is performed, or was abandoned with the launch.
void finish_mbarriers(Block& block, bool perform_them);

}  // namespace sim
