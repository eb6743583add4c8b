#include "host_threads.h"

#include <pthread.h>
#include <stdint.h>

#include "api.h"
#include "registry.h"

// The load address of libsim.
extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" const char _end[] __attribute__((visibility("hidden")));

namespace sim::host_threads {

namespace {

// Returns whether the place is in libsim, whose own locks and threads do not order a program. (`place` should be the
// return address of an indirect caller: the direct caller may have been left by a tail call, and then has no return
// address on the stack.)
bool of_simulator(const void* place) { return place >= __ehdr_start && place < _end; }

// The operations that a thread knows to be complete, or that were published through an object.
struct Knowledge {
    Knowledge* next;
    const void* object;
    Clock clock;
};

constexpr size_t buckets = 256;
Knowledge* left[buckets];  // what threads have released through objects: hash table by object
bool any_left = false;
unsigned current_generation = 1;
bool several = false;  // the program started a second thread
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

thread_local Knowledge* own = nullptr;
thread_local Knowledge* of_function = nullptr;  // in a host function of a stream: what it knows to be complete
thread_local unsigned generation = 0;           // generation in which `own` is valid
thread_local const void* to_acquire = nullptr;

Knowledge*& own_knowledge() {
    if (of_function) return of_function;
    if (generation != current_generation && own) own->clock.clear();
    generation = current_generation;
    return own;
}

Knowledge*& bucket_of(const void* object) {
    return left[(reinterpret_cast<uintptr_t>(object) >> 3) * 0x9E3779B97F4A7C15u >> 56];
}

Knowledge* left_at(const void* object) {
    Knowledge* found = bucket_of(object);
    while (found && found->object != object) found = found->next;
    return found;
}

void learn(const Clock& clock) {
    Knowledge*& known = own_knowledge();
    if (!known) known = new Knowledge();
    known->clock.join(clock);
}

struct Start {
    void* (*function)(void*);
    void* argument;
    Clock known;
};

// At the end of a thread, releases what it knows through its handle, for pthread_join. A later thread may get an equal
// handle. A join of that thread then acquires what both threads knew.
struct Ending {
    ~Ending() {
        release(reinterpret_cast<const void*>(pthread_self()));
        delete own;
        own = nullptr;
    }
};

void* run_thread(void* given) {
    Start start = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    if (any_left) {
        HistoryLock lock;
        if (Knowledge* earlier = left_at(reinterpret_cast<const void*>(pthread_self()))) earlier->clock.clear();
    }
    if (start.known.lanes()) learn(start.known);
    Ending ending;
    return start.function(start.argument);
}

}  // namespace

HistoryLock::HistoryLock() : held_(several) {
    if (held_) lock_mutex(mutex);
}
HistoryLock::~HistoryLock() {
    if (held_) unlock_mutex(mutex);
}

bool knows(uint32_t lane, uint32_t number) {
    if (to_acquire) acquire(to_acquire);
    Knowledge* known = own_knowledge();
    return known && known->clock.covers(lane, number);
}

void add_knowledge(Clock& clock) {
    if (to_acquire) acquire(to_acquire);
    if (Knowledge* known = own_knowledge()) clock.join(known->clock);
}

void begin_function(const Clock& known, uint32_t lane, uint32_t number) {
    of_function = new Knowledge();
    of_function->clock = known;
    of_function->clock.raise(lane, number);
}

void end_function(Clock& after) {
    after.join(of_function->clock);
    delete of_function;
    of_function = nullptr;
}

void release(const void* object) {
    Knowledge* known = own_knowledge();
    if (!known || !known->clock.lanes()) return;
    HistoryLock lock;
    Knowledge* there = left_at(object);
    if (!there) {
        Knowledge*& bucket = bucket_of(object);
        there = bucket = new Knowledge{bucket, object, {}};
        any_left = true;
    }
    there->clock.join(known->clock);
}

void acquire(const void* object) {
    if (!any_left) return;
    HistoryLock lock;
    if (const Knowledge* there = left_at(object)) learn(there->clock);
}

void acquire_later(const void* object) {
    acquire(object);
    to_acquire = object;
}

void reset() {
    HistoryLock lock;
    of_function = nullptr;
    ++current_generation;
    any_left = false;
    for (Knowledge*& bucket : left) {
        while (Knowledge* first = bucket) {
            bucket = first->next;
            delete first;
        }
    }
}

}  // namespace sim::host_threads

using namespace sim::host_threads;

extern "C" {

void sim_host_release(const void* object) {
    if (!of_simulator(object)) release(object);
}

void sim_host_acquire(const void* object) {
    if (!of_simulator(object)) acquire(object);
}

int sim_host_start(int (*create)(void*, const void*, void* (*)(void*), void*), void* thread, const void* attributes,
                   void* (*function)(void*), void* argument) {
    if (of_simulator(reinterpret_cast<const void*>(function))) return create(thread, attributes, function, argument);
    several = true;
    auto* start = new Start{function, argument, {}};
    add_knowledge(start->known);
    int error = create(thread, attributes, run_thread, start);
    if (error) delete start;
    return error;
}

}  // extern "C"
