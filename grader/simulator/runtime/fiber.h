// Fibers: the stacks on which CUDA threads run.
//
// A fiber serves one thread after another. It is only left when its thread waits for others, so a kernel without
// barriers runs a whole grid on one fiber. Below each stack lies a guard page: running into it is a fault that the
// simulator turns into a "stack overflow" finding.
#pragma once

#include <stddef.h>

namespace sim {

struct Fiber {
    char* low;  // of the usable stack
    char* top;  // where a fresh context starts
    Fiber* next;
};

// The fibers of one worker. Stacks are mapped when first needed and kept for later launches.
class FiberPool {
  public:
    FiberPool() = default;
    FiberPool(const FiberPool&) = delete;
    FiberPool& operator=(const FiberPool&) = delete;
    ~FiberPool();

    Fiber* take();  // null when the process may map no more memory
    void give(Fiber* fiber) {
        fiber->next = free_;
        free_ = fiber;
    }
    // After a launch: all stacks are free again, also those of threads that were suspended when it was ended. Those
    // beyond what an ordinary block needs are unmapped. `cut_short`: some threads did not come to their end.
    void give_all(bool cut_short);

    // Whether `address` lies in the guard page of one of these stacks.
    bool in_guard(const void* address) const;

    // Maps stacks of this size from now on; existing ones are unmapped. No fiber may be in use.
    void set_stack_bytes(size_t bytes);

  private:
    struct Chunk;
    bool grow();
    void unmap();

    size_t stack_bytes_ = 128 << 10;
    Chunk* chunks_ = nullptr;
    Fiber* free_ = nullptr;
    size_t count_ = 0;
    bool stale_ = false;  // threads that were cut short have left red zones of local arrays there
};

}  // namespace sim
