// cp.async: copies that arrive when their thread waits for them.
//
// Performing them at once would hide the classic mistake, reading a tile before waiting for it. So each thread keeps a
// queue, and the bytes move as late as the program allows.
#include <stdlib.h>
#include <string.h>

#include "scheduler.h"
#include "sim/device.h"

namespace sim {

struct AsyncCopies {
    struct Copy {
        void* shared;
        const void* global;
        unsigned bytes;
        unsigned zero_fill;
        unsigned group;
    };
    Copy* copies;
    unsigned first, count, capacity;  // copies[first, count) are pending
    unsigned group;                   // the one being filled; older ones are committed
};

namespace {

void perform(const AsyncCopies::Copy& copy) {
    memcpy(copy.shared, copy.global, copy.bytes - copy.zero_fill);
    memset(static_cast<char*>(copy.shared) + (copy.bytes - copy.zero_fill), 0, copy.zero_fill);
}

[[noreturn]] void out_of_memory(const void* address) {
    raise_fault(events::FaultKind::out_of_memory, 2, nullptr, address, "no memory for pending asynchronous copies");
}

}  // namespace

void async_copy(void* shared, const void* global, size_t bytes, size_t zero_fill) {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = __builtin_return_address(0);
    if (zero_fill > bytes) zero_fill = bytes;
    if (self->block->launch->checks_enabled) {
        events::async_copy(*self, shared, global, bytes, zero_fill, self->call_address);
    }
    AsyncCopies* queue = self->async_copies;
    if (!queue) {
        queue = self->async_copies = static_cast<AsyncCopies*>(calloc(1, sizeof(AsyncCopies)));
        if (!queue) out_of_memory(self->call_address);
    }
    if (queue->count == queue->capacity) {
        unsigned pending = queue->count - queue->first;
        if (queue->first > 0) {
            memmove(queue->copies, queue->copies + queue->first, pending * sizeof(AsyncCopies::Copy));
        } else {
            unsigned capacity = queue->capacity ? queue->capacity * 2 : 16;
            void* copies = realloc(queue->copies, capacity * sizeof(AsyncCopies::Copy));
            if (!copies) out_of_memory(self->call_address);
            queue->copies = static_cast<AsyncCopies::Copy*>(copies);
            queue->capacity = capacity;
        }
        queue->first = 0;
        queue->count = pending;
    }
    queue->copies[queue->count++] = {shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(zero_fill),
                                     queue->group};
}

void async_copy_commit() {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = __builtin_return_address(0);
    if (self->block->launch->checks_enabled) events::async_commit(*self);
    if (!self->async_copies) self->async_copies = static_cast<AsyncCopies*>(calloc(1, sizeof(AsyncCopies)));
    if (!self->async_copies) out_of_memory(self->call_address);
    ++self->async_copies->group;  // an empty group counts too
}

void async_copy_wait(unsigned groups_that_may_be_pending) {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = __builtin_return_address(0);
    if (self->block->launch->checks_enabled) events::async_wait(*self, groups_that_may_be_pending);
    AsyncCopies* queue = self->async_copies;
    if (!queue) return;
    // Committed groups are 0 .. group - 1; all but the youngest few must be complete.
    while (queue->first < queue->count) {
        const AsyncCopies::Copy& copy = queue->copies[queue->first];
        if (copy.group + groups_that_may_be_pending >= queue->group) break;
        perform(copy);
        ++queue->first;
    }
}

// A thread has exited (its copies complete some time later, here at once) or was abandoned.
void finish_async_copies(Thread& thread, bool perform_them) {
    AsyncCopies* queue = thread.async_copies;
    thread.async_copies = nullptr;
    for (unsigned i = queue->first; perform_them && i < queue->count; ++i) perform(queue->copies[i]);
    free(queue->copies);
    free(queue);
}

}  // namespace sim
