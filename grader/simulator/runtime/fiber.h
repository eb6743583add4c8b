// Fibers: the stacks on which CUDA threads run.
//
// One fiber serves many threads in turn. It is suspended only when its thread waits for others, so a kernel without
// barriers runs a whole grid on one fiber. Below each stack lies a guard page. An access to it is a fault, which the
// simulator reports as a stack overflow.
#pragma once

#include <stddef.h>

namespace sim {

struct Fiber {
    char* low;  // lowest usable address of the stack
    char* top;  // stack pointer of a fresh context
    Fiber* next;
};

// The fibers of one worker. Stacks are mapped when first needed and kept for later launches.
class FiberPool {
  public:
    FiberPool() = default;
    FiberPool(const FiberPool&) = delete;
    FiberPool& operator=(const FiberPool&) = delete;
    ~FiberPool();

    Fiber* take();  // returns null if the process cannot map more memory
    void give(Fiber* fiber) {
        fiber->next = free_;
        free_ = fiber;
    }
    // Called after a launch. Returns all stacks to the pool, including those of suspended threads of an aborted launch.
    // Unmaps stacks if there are more than an ordinary block needs. `cut_short`: some threads did not run to their end.
    void give_all(bool cut_short);

    // Returns whether `address` lies in the guard page of one of these stacks.
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
    bool stale_ = false;  // the stacks may hold red zones of local arrays that aborted threads left there
};

}  // namespace sim
