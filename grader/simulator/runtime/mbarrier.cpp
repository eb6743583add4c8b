// mbarriers: phases, and the arrivals of threads, of the bytes of bulk copies, and of threads' earlier cp.async.
//
// The object in shared memory is opaque to kernels, so its state is kept outside, by the object's address.
#include "sim/mbarrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async_operations.h"
#include "growable.h"
#include "misuse.h"
#include "scheduler.h"
#include "sim/error_codes.h"
#include "sim/shared.h"
#include "tensor_memory.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

// The largest number of arrivals, and of bytes, that an mbarrier counts (PTX ISA, "Contents of the mbarrier object").
constexpr uint32_t most = (1u << 20) - 1;

Mbarrier* find(const Block& block, const void* object) {
    for (Mbarrier* barrier = block.mbarriers; barrier; barrier = barrier->next)
        if (barrier->object == object) return barrier;
    return nullptr;
}

// The mbarriers that an operation accepts: those in the shared memory of its block, or of any block of its cluster.
enum class Reach { block, cluster };

// Returns the block whose shared memory holds the object.
Block& check_object(Thread& self, Site site, const void* object, Reach reach = Reach::block) {
    Block* owner = shared_owner(*self.block, object);
    if (!owner) misused(self, site, "the mbarrier is not in shared memory: declare it __shared__");
    if (reach == Reach::block && owner != self.block) {
        misused(self, site, "the mbarrier is in another block's shared memory: threads may arrive there but not wait");
    }
    if (reinterpret_cast<uintptr_t>(object) % 8 != 0)
        misused(self, site, "misaligned mbarrier: its address must be a multiple of 8 bytes");
    if (owner->live == 0) misused(self, site, "the mbarrier is in the shared memory of a block that has ended");
    return *owner;
}

// Runs other threads, because this thread waits at an mbarrier. If `barrier` is null, this thread waits until another
// thread initializes the mbarrier.
void wait_for_others(Thread& self, Mbarrier* barrier, unsigned detail) {
    self.wait = Wait::mbarrier;
    self.wait_detail = static_cast<uint8_t>(detail);
    self.mbarrier = barrier;
    spin(self);
    self.wait = Wait::none;
}

// Returns the mbarrier at an address. If no thread has initialized it yet, the thread waits for that. Without the wait,
// the result would depend on the schedule. The race check reports an initialization that is not ordered before the use.
Mbarrier& find_mbarrier(Thread& self, Site site, const void* object, Reach reach = Reach::block) {
    for (;;) {
        if (Mbarrier* barrier = find(check_object(self, site, object, reach), object)) return *barrier;
        wait_for_others(self, nullptr, 0);
    }
}

// Returns the number of the next operation of the cluster, from 1.
uint64_t next_number(Thread& self) { return ++self.block->cluster->blocks[0]->operation_count; }

void something_happened() {
    current_worker->stalled_rounds = 0;
    current_worker->spin_rounds = 0;
}

// Starts the next phase if the current one is complete.
bool complete_phase(Mbarrier& barrier) {
    if (barrier.pending || barrier.bytes) return false;
    ++barrier.phase;
    barrier.pending = barrier.expected;
    if (barrier.block->checked) events::mbarrier_complete(barrier);
    return true;
}

void add_bytes(Thread& self, Site site, Mbarrier& barrier, int64_t bytes) {
    int64_t sum = barrier.bytes + bytes;
    if (sum > most || sum < -static_cast<int64_t>(most)) {
        misused(self, site, "too many pending bytes on the mbarrier: the tx-count is at most 1,048,575");
    }
    barrier.bytes = static_cast<int32_t>(sum);
}

uint64_t state_of(const Mbarrier& barrier) { return static_cast<uint64_t>(barrier.phase) << 20 | barrier.pending; }

constexpr const char* too_many =
    "too many arrivals at the mbarrier in one phase: more than the count given to mbarrier.init";

void perform_operation(const MbarrierOperation& operation) {
    Mbarrier& barrier = *operation.barrier;
    --barrier.operations;
    if (operation.is_arrival) {
        if (operation.tensor)
            perform_tensor_operations(*operation.tensor, operation.copies);
        else if (operation.thread->async_copies)
            operation.thread->async_copies->copies.perform_until(operation.copies);
        operation.thread->call_address = operation.address;
        if (barrier.pending == 0) misused(*operation.thread, operation.site, too_many);
        --barrier.pending;
    } else {
        perform_load(operation.copy);
        barrier.bytes -= static_cast<int32_t>(operation.copy.bytes());
    }
    if (barrier.block->checked) events::mbarrier_operation_done(*operation.thread, barrier, operation.number);
}

MbarrierOperation& start(Thread& self, const MbarrierOperation& operation) {
    auto* copy = static_cast<MbarrierOperation*>(malloc(sizeof operation));
    if (!copy) out_of_memory(self.call_address, too_many_copies);
    *copy = operation;
    MbarrierOperation** last = &self.block->operations;
    while (*last) last = &(*last)->next;
    *last = copy;
    ++operation.barrier->operations;
    something_happened();
    return *copy;
}

// Removes one of the block's operations from its list. The choice varies, because the hardware does not guarantee an
// order of completion.
MbarrierOperation* take_operation(Worker& worker, Block& block) {
    unsigned count = 0;
    for (MbarrierOperation* operation = block.operations; operation; operation = operation->next) ++count;
    if (count == 0) return nullptr;
    MbarrierOperation** place = &block.operations;
    for (unsigned skip = choose_place(worker, count); skip; --skip) place = &(*place)->next;
    MbarrierOperation* operation = *place;
    *place = operation->next;
    return operation;
}

bool waits_for_phase(Thread& self, Mbarrier& barrier, bool (*complete)(const Mbarrier&, uint64_t), uint64_t wanted,
                     bool acquires) {
    const void* object = barrier.object;
    if (!complete(barrier, wanted)) {
        if (self.block->checked) events::mbarrier_waits(self, barrier);
        wait_for_others(self, &barrier, barrier.phase & 1);
        Mbarrier* still = find(*self.block, object);
        if (!still || !complete(*still, wanted)) return false;
    }
    if (self.block->checked) events::mbarrier_waited(self, barrier, acquires);
    return true;
}

}  // namespace

void mbarrier_init(Site site, void* object, uint32_t count) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_object(*self, site, object);
    if (count == 0 || count > most) misused(*self, site, "invalid count for mbarrier.init: it must be 1 to 1,048,575");
    if (find(*self->block, object)) {
        misused(*self, site, "second mbarrier.init of the same mbarrier: execute mbarrier.inval first");
    }
    auto* barrier = static_cast<Mbarrier*>(calloc(1, sizeof(Mbarrier)));
    if (!barrier) out_of_memory(self->call_address, too_many_copies);
    barrier->object = static_cast<char*>(object);
    barrier->block = self->block;
    barrier->expected = barrier->pending = count;
    if (self->block->checked) events::mbarrier_begin(*self, *barrier, self->call_address);
    barrier->next = self->block->mbarriers;
    self->block->mbarriers = barrier;
    something_happened();
}

void mbarrier_invalidate(Site site, void* object) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    Mbarrier& barrier = find_mbarrier(*self, site, object);
    if (barrier.operations)
        misused(*self, site, "mbarrier.inval while copies that complete on the mbarrier are pending");
    if (self->block->checked) events::mbarrier_end(self, barrier, self->call_address);
    take_out(self->block->mbarriers, &barrier);
    free(&barrier);
}

uint64_t mbarrier_arrive(Site site, void* object, Arrival arrival, uint32_t count, uint32_t bytes) {
    Thread* self = enter(site, CALLER);
    if (!self) return 0;
    Mbarrier& barrier = find_mbarrier(*self, site, object, Reach::cluster);
    if (self->block->checked) events::mbarrier_arrive(*self, barrier, arrival.releases, self->call_address);
    if (count == 0 || count > barrier.pending) {
        misused(*self, site, count ? too_many : "invalid arrival count 0: it must be at least 1");
    }
    if (bytes) add_bytes(*self, site, barrier, bytes);
    uint64_t state = state_of(barrier);
    if (arrival.drops) barrier.expected -= count;
    barrier.pending -= count;
    complete_phase(barrier);
    something_happened();
    return state;
}

void mbarrier_expect_bytes(Site site, void* object, uint32_t bytes) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    Mbarrier& barrier = find_mbarrier(*self, site, object, Reach::cluster);
    if (self->block->checked) events::mbarrier_arrive(*self, barrier, false, self->call_address);
    add_bytes(*self, site, barrier, bytes);
    something_happened();
}

void mbarrier_complete_bytes(Site site, void* object, uint32_t bytes) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    Mbarrier& barrier = find_mbarrier(*self, site, object, Reach::cluster);
    if (self->block->checked) events::mbarrier_arrive(*self, barrier, false, self->call_address);
    add_bytes(*self, site, barrier, -static_cast<int64_t>(bytes));
    complete_phase(barrier);
    something_happened();
}

bool mbarrier_test_parity(Site site, void* object, uint32_t parity, bool acquires) {
    Thread* self = enter(site, CALLER);
    if (!self) return true;
    if (parity > 1) misused(*self, site, "invalid phase parity: it must be 0 or 1");
    Mbarrier& barrier = find_mbarrier(*self, site, object);
    auto complete = [](const Mbarrier& b, uint64_t wanted) { return (b.phase & 1) != wanted; };
    return waits_for_phase(*self, barrier, complete, parity, acquires);
}

bool mbarrier_test_state(Site site, void* object, uint64_t state, bool acquires) {
    Thread* self = enter(site, CALLER);
    if (!self) return true;
    Mbarrier& barrier = find_mbarrier(*self, site, object);
    auto complete = [](const Mbarrier& b, uint64_t wanted) { return b.phase != static_cast<uint32_t>(wanted >> 20); };
    return waits_for_phase(*self, barrier, complete, state, acquires);
}

void async_copy_arrive(Site site, void* object, bool counted) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    Mbarrier& barrier = find_mbarrier(*self, site, object);
    if (!counted) ++barrier.pending;
    uint64_t copies = self->async_copies ? self->async_copies->copies.added() : 0;
    uint64_t number = next_number(*self);
    MbarrierOperation operation = {{},   {},     &barrier, self,    site,   self->call_address,
                                   true, copies, number,   nullptr, nullptr};
    if (self->block->checked) events::async_arrive(*self, barrier, number, self->call_address);
    start(*self, operation);
}

void check_bulk_copy(Thread& self, Site site, const void* shared, const void* global, uint32_t bytes) {
    auto together = reinterpret_cast<uintptr_t>(shared) | reinterpret_cast<uintptr_t>(global) | bytes;
    if (!shared_owner(*self.block, shared))
        misused(self, site, "the shared-memory operand of the bulk copy is not in shared memory");
    if (together % 16 != 0) {
        misused(self, site, "misaligned bulk copy: size and both addresses must be multiples of 16 bytes");
    }
}

// Returns the block whose shared memory receives an asynchronous operation, and which has its mbarrier.
const Block& target_block(Thread& self, Site site, const void* shared, const void* object) {
    const Block* target = shared_owner(*self.block, shared);
    if (!target || target != shared_owner(*self.block, object)) {
        misused(self, site, "the destination and the mbarrier of the copy must be in the same block's shared memory");
    }
    return *target;
}

// Queues a copy. `value`: the bytes to store if they come from registers (st.async), else null.
void start_copy(Thread& self, Site site, const BulkCopy& copy, const void* value, bool reads, const void* object) {
    Mbarrier& barrier = find_mbarrier(self, site, object, Reach::cluster);
    if (copy.bytes() > most)
        misused(self, site, "too many pending bytes on the mbarrier: the tx-count is at most 1,048,575");
    uint64_t number = next_number(self);
    MbarrierOperation operation = {copy,  {}, &barrier, &self,   site,   self.call_address,
                                   false, 0,  number,   nullptr, nullptr};
    if (value) memcpy(operation.value, value, copy.bytes());
    if (self.block->checked) events::bulk_load(self, copy, reads, barrier, number, self.call_address);
    MbarrierOperation& started = start(self, operation);
    if (value) started.copy.map.address = reinterpret_cast<char*>(started.value);
}

void bulk_load(Site site, void* shared, const void* global, uint32_t bytes, void* object, uint32_t multicast) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_bulk_copy(*self, site, shared, global, bytes);
    char* from = const_cast<char*>(static_cast<const char*>(global));
    start_load(*self, site, run_of_bytes(static_cast<char*>(shared), from, bytes), object, multicast);
}

void start_load(Thread& self, Site site, const BulkCopy& copy, const void* object, uint32_t multicast) {
    const Cluster& cluster = *self.block->cluster;
    if (multicast & barrier_in_pair) {
        const Block* to = shared_owner(*self.block, copy.shared);
        const Block* at = shared_owner(*self.block, object);
        if (!to || !at || to->rank / 2 != at->rank / 2)
            misused(self, site, "the destination and the mbarrier of a cta_group::2 copy must be in the same CTA pair");
        return start_copy(self, site, copy, nullptr, true, object);
    }
    const Block& owner = target_block(self, site, copy.shared, object);
    if (!multicast) return start_copy(self, site, copy, nullptr, true, object);
    uint32_t blocks = multicast & (multicast_to - 1);
    if (blocks == 0 || blocks >> cluster.size) {
        misused(self, site, "invalid multicast mask: it must name at least one block, and only blocks of the cluster");
    }
    bool first = true;
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        if (!(blocks >> rank & 1)) continue;
        // A multicast writes at the same offset in the shared memory of each block.
        char* shared = cluster.blocks[rank]->shared;
        BulkCopy one = copy;
        one.shared = shared + (copy.shared - owner.shared);
        start_copy(self, site, one, nullptr, first, shared + (static_cast<const char*>(object) - owner.shared));
        first = false;
    }
}

void start_commit(Thread& self, Site site, void* object, uint32_t multicast) {
    Block& block = *self.block;
    const Cluster& cluster = *block.cluster;
    Block& owner = check_object(self, site, object, Reach::cluster);
    uint32_t blocks = multicast ? multicast & (multicast_to - 1) : 1u << owner.rank;
    if (blocks == 0 || blocks >> cluster.size)
        misused(self, site, "invalid multicast mask: it must name at least one block, and only blocks of the cluster");
    uint64_t last = cluster.blocks[0]->operation_count;
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        if (!(blocks >> rank & 1)) continue;
        const char* there = cluster.blocks[rank]->shared + (static_cast<char*>(object) - owner.shared);
        Mbarrier& barrier = find_mbarrier(self, site, there, Reach::cluster);
        uint64_t number = next_number(self);
        MbarrierOperation operation = {{},   {},   &barrier, &self,   site,  self.call_address,
                                       true, last, number,   nullptr, &block};
        if (block.checked) events::tensor_committed(self, barrier, number, self.call_address);
        start(self, operation);
    }
}

void async_store(Site site, void* shared, const void* value, unsigned bytes, void* object) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    target_block(*self, site, shared, object);
    if (reinterpret_cast<uintptr_t>(shared) % bytes != 0) {
        misused(*self, site, "misaligned st.async: the address must be a multiple of its size");
    }
    start_copy(*self, site, run_of_bytes(static_cast<char*>(shared), nullptr, bytes), value, false, object);
}

void shared_copy(Site site, void* shared, const void* from, uint32_t bytes, void* object) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_bulk_copy(*self, site, from, shared, bytes);
    target_block(*self, site, shared, object);
    char* source = const_cast<char*>(static_cast<const char*>(from));
    start_copy(*self, site, run_of_bytes(static_cast<char*>(shared), source, bytes), nullptr, true, object);
}

bool perform_operations(Worker& worker) {
    bool any = false;
    for (BlockStorage* block = worker.resident; block; block = block->next) {
        while (MbarrierOperation* operation = take_operation(worker, *block)) {
            perform_operation(*operation);
            bool complete = complete_phase(*operation->barrier);
            free(operation);
            any = true;
            if (complete) break;
        }
    }
    if (any) worker.stalled_rounds = worker.spin_rounds = 0;
    return any;
}

void finish_mbarriers(Block& block, bool perform_them) {
    while (MbarrierOperation* operation = block.operations) {
        block.operations = operation->next;
        if (perform_them && !operation->is_arrival) perform_load(operation->copy);
        free(operation);
    }
    while (Mbarrier* barrier = block.mbarriers) {
        block.mbarriers = barrier->next;
        if (barrier->checks) events::mbarrier_end(nullptr, *barrier, nullptr);
        free(barrier);
    }
}

}  // namespace sim
