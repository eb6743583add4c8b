// cp.async and bulk stores: copies that are performed when their thread waits for them.
#include <stdlib.h>
#include <string.h>

#include "async_operations.h"
#include "block_order.h"
#include "misuse.h"
#include "scheduler.h"
#include "sim/device.h"
#include "sim/mbarrier.h"
#include "sim/shared.h"

#include <new>

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

void perform(const Copy& copy) {
    memcpy(copy.to, copy.from, copy.bytes - copy.zero_fill);
    memset(static_cast<char*>(copy.to) + (copy.bytes - copy.zero_fill), 0, copy.zero_fill);
}

void perform(const BulkCopy& copy) { perform_store(copy); }

}  // namespace

template <typename Copy>
CopyGroups<Copy>::~CopyGroups() {
    free(entries_);
}

template <typename Copy>
bool CopyGroups<Copy>::add(const Copy& copy) {
    if (count_ == capacity_) {
        unsigned pending = count_ - first_;
        if (first_ > 0) {
            memmove(entries_, entries_ + first_, pending * sizeof(Entry));
        } else {
            unsigned capacity = capacity_ ? capacity_ * 2 : 16;
            void* entries = realloc(entries_, capacity * sizeof(Entry));
            if (!entries) return false;
            entries_ = static_cast<Entry*>(entries);
            capacity_ = capacity;
        }
        first_ = 0;
        count_ = pending;
    }
    entries_[count_++] = {copy, group_};
    return true;
}

template <typename Copy>
void CopyGroups<Copy>::perform_first() {
    perform(entries_[first_++].copy);
    ++performed_;
}

template <typename Copy>
void CopyGroups<Copy>::wait(unsigned may_pend) {
    // The groups 0 to group_ - 1 are committed. Perform the copies of all of them except the last `may_pend` groups.
    while (first_ < count_ && entries_[first_].group + may_pend < group_) perform_first();
}

template <typename Copy>
void CopyGroups<Copy>::perform_until(uint64_t added) {
    while (first_ < count_ && performed_ < added) perform_first();
}

template class CopyGroups<Copy>;
template class CopyGroups<BulkCopy>;

namespace {

AsyncCopies& copies_of(Thread& self) {
    if (!self.async_copies) self.async_copies = new (std::nothrow) AsyncCopies();
    if (!self.async_copies) out_of_memory(self.call_address, too_many_copies);
    return *self.async_copies;
}

}  // namespace

void async_copy(void* shared, const void* global, size_t bytes, size_t zero_fill, CacheOperator cache) {
    Thread* self = enter(CALLER);
    if (!self) return;
    if (zero_fill > bytes) zero_fill = bytes;
    if (self->block->checked) events::async_copy(*self, shared, global, bytes, zero_fill, cache, self->call_address);
    Copy copy = {shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(zero_fill)};
    if (!copies_of(*self).copies.add(copy)) out_of_memory(self->call_address, too_many_copies);
}

void async_copy_commit() {
    Thread* self = enter(CALLER);
    if (!self) return;
    if (self->block->checked) events::async_commit(*self);
    copies_of(*self).copies.commit();
}

void async_copy_wait(unsigned groups_that_may_be_pending) {
    Thread* self = enter(CALLER);
    if (!self) return;
    if (self->block->checked) events::async_wait(*self, groups_that_may_be_pending);
    if (self->async_copies) self->async_copies->copies.wait(groups_that_may_be_pending);
}

void bulk_store(Site site, void* global, const void* shared, uint32_t bytes) {
    Thread* self = enter(CALLER);
    if (!self) return;
    check_bulk_copy(*self, site, shared, global, bytes);
    start_store(*self,
                run_of_bytes(const_cast<char*>(static_cast<const char*>(shared)), static_cast<char*>(global), bytes));
}

void start_store(Thread& self, const BulkCopy& copy) {
    if (copy.reduction != Reduction::none) in_block_order("its threads use atomic operations");
    if (self.block->checked) events::bulk_store(self, copy, self.call_address);
    if (!copies_of(self).bulk_stores.add(copy)) out_of_memory(self.call_address, too_many_copies);
}

void bulk_commit() {
    Thread* self = enter(CALLER);
    if (!self) return;
    if (self->block->checked) events::bulk_commit(*self);
    copies_of(*self).bulk_stores.commit();
}

void bulk_wait(unsigned groups_that_may_be_pending, bool reads_only) {
    Thread* self = enter(CALLER);
    if (!self) return;
    if (self->block->checked) events::bulk_wait(*self, groups_that_may_be_pending, reads_only);
    if (self->async_copies) self->async_copies->bulk_stores.wait(groups_that_may_be_pending);
}

void proxy_fence() {
    Thread* self = enter(CALLER);
    if (self && self->block->checked) events::proxy_fence(*self);
}

// Called when a thread has exited or was abandoned. `perform_them`: its pending copies are performed now. On a GPU they
// complete at some time after the exit.
void finish_async_copies(Thread& thread, bool perform_them) {
    AsyncCopies* copies = thread.async_copies;
    thread.async_copies = nullptr;
    if (perform_them) {
        copies->copies.perform_until(~uint64_t(0));
        copies->bulk_stores.perform_until(~uint64_t(0));
    }
    delete copies;
}

}  // namespace sim
