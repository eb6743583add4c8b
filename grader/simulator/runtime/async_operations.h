// Asynchronous operations, and the mechanisms that complete them:
//
//   CopyGroups   per thread: the groups of cp.async and the bulk async-groups of stores, which it commits and waits for
//   Mbarrier     per block: an object in shared memory that counts arrivals and bytes. Any thread of the block may
//                wait for a phase; threads of the whole cluster may arrive
//
// An operation is performed as late as the program allows. If it belongs to a group, it is performed when its thread
// waits for the group. If it arrives at an mbarrier, it is performed when no thread of the worker can continue without
// it. A kernel that does not wait therefore reads the old contents.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tensor_map.h"
#include "thread.h"

namespace sim {

struct Worker;

// One cp.async.
struct Copy {
    void* to;
    const void* from;
    unsigned bytes;
    unsigned zero_fill;  // this many of `bytes`, at the end, are filled with zeros instead of copied
};

// The queue of one thread's copies, with the group of each. The template parameter is sim::Copy or BulkCopy.
template <typename Copy>
class CopyGroups {
  public:
    CopyGroups() = default;
    CopyGroups(const CopyGroups&) = delete;
    CopyGroups& operator=(const CopyGroups&) = delete;
    ~CopyGroups();

    bool add(const Copy& copy);    // false: out of memory
    void commit() { ++group_; }    // an empty group also counts
    void wait(unsigned may_pend);  // performs all committed groups except the latest `may_pend`
    uint64_t added() const { return performed_ + count_ - first_; }
    void perform_until(uint64_t added);  // performs copies until the first `added` copies of the thread are done

  private:
    struct Entry {
        Copy copy;
        unsigned group;
    };
    void perform_first();

    Entry* entries_ = nullptr;
    unsigned first_ = 0, count_ = 0, capacity_ = 0;  // entries_[first_, count_) are pending
    unsigned group_ = 0;                             // the group being filled; older ones are committed
    uint64_t performed_ = 0;
};

// The asynchronous copies of one thread.
struct AsyncCopies {
    CopyGroups<Copy> copies;           // cp.async
    CopyGroups<BulkCopy> bulk_stores;  // cp.async.bulk from shared to global memory
};

// The state of an object that mbarrier.init initialized. PTX ISA, "mbarrier": a phase completes when no arrival is
// pending and the tx-count is zero.
struct Mbarrier {
    char* object;  // address of the object in shared memory
    Block* block;  // the block whose shared memory holds the object
    uint32_t phase;
    uint32_t expected;    // arrivals of each phase
    uint32_t pending;     // arrivals missing from the current one
    int32_t bytes;        // the tx-count: bytes expected in the current phase and not yet arrived
    unsigned operations;  // number of operations in flight that will arrive here
    void* checks;
    Mbarrier* next;
};

// An operation in flight that will arrive at an mbarrier: a bulk copy, an st.async, or the arrival of a thread's
// earlier cp.async.
struct MbarrierOperation {
    BulkCopy copy;
    uint64_t value[2];  // stored by st.async: the source of its copy
    Mbarrier* barrier;
    Thread* thread;  // the thread that started the operation
    Site site;       // the place in the source where it started
    const void* address;
    bool is_arrival;
    uint64_t copies;  // for cp.async.mbarrier.arrive: number of the last cp.async that must complete before it
    uint64_t number;
    MbarrierOperation* next;
    // For tcgen05.commit: the block whose tensor operations, up to number `copies`, must complete before the arrival.
    // Null for other operations.
    Block* tensor;
};

// Starts a copy from global memory to shared memory of a block of the cluster; its bytes arrive at the mbarrier.
// `multicast` as in bulk_load (sim/mbarrier.h).
void start_load(Thread& self, Site site, const BulkCopy& copy, const void* mbarrier, uint32_t multicast = 0);
// tcgen05.commit: an arrival when every tensor operation that the thread started is complete. `multicast` as above.
void start_commit(Thread& self, Site site, void* mbarrier, uint32_t multicast);
// Starts a copy to global memory in the bulk group that the running thread is filling.
void start_store(Thread& self, const BulkCopy& copy);

// Performs operations in flight until a phase of an mbarrier completes. Returns false when nothing was in flight.
bool perform_operations(Worker& worker);
// Called when the block has ended: performs the operations still in flight, or drops them after an aborted launch.
void finish_mbarriers(Block& block, bool perform_them);

}  // namespace sim
