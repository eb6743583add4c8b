// Mapping and reuse of fiber stacks.
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sim {

namespace {

// A chunk is one memory mapping with the stacks of this many fibers, as many as a warp has lanes.
constexpr size_t fibers_per_chunk = 32;

// The number of fibers kept after a launch. Only cooperative launches have more suspended threads.
constexpr size_t kept_fibers = 4096;

size_t page_bytes() {
    static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

}  // namespace

struct FiberPool::Chunk {
    Chunk* next;
    char* base;
    size_t stride;  // bytes of guard page and stack together
    size_t bytes;
    Fiber fibers[fibers_per_chunk];
};

FiberPool::~FiberPool() { unmap(); }

Fiber* FiberPool::take() {
    for (Chunk* chunk = stale_ ? chunks_ : nullptr; chunk; chunk = chunk->next)
        madvise(chunk->base, chunk->bytes, MADV_DONTNEED);
    stale_ = false;
    if (!free_ && !grow()) return nullptr;
    Fiber* fiber = free_;
    free_ = fiber->next;
    return fiber;
}

void FiberPool::give_all(bool cut_short) {
    stale_ = stale_ || cut_short;
    while (count_ > kept_fibers) {
        Chunk* newest = chunks_;
        chunks_ = newest->next;
        munmap(newest->base, newest->bytes);
        free(newest);
        count_ -= fibers_per_chunk;
    }
    free_ = nullptr;
    for (Chunk* chunk = chunks_; chunk; chunk = chunk->next) {
        for (size_t i = fibers_per_chunk; i-- > 0;) give(&chunk->fibers[i]);
    }
}

bool FiberPool::in_guard(const void* address) const {
    const char* byte = static_cast<const char*>(address);
    for (const Chunk* chunk = chunks_; chunk; chunk = chunk->next) {
        if (byte < chunk->base || byte >= chunk->base + chunk->bytes) continue;
        return static_cast<size_t>(byte - chunk->base) % chunk->stride < page_bytes();
    }
    return false;
}

void FiberPool::set_stack_bytes(size_t bytes) {
    bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
    if (bytes == stack_bytes_) return;
    unmap();
    stack_bytes_ = bytes;
}

bool FiberPool::grow() {
    size_t stride = page_bytes() + stack_bytes_;
    size_t bytes = stride * fibers_per_chunk;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    auto* chunk = static_cast<Chunk*>(malloc(sizeof(Chunk)));
    if (!chunk) {
        munmap(base, bytes);
        return false;
    }
    chunk->base = static_cast<char*>(base);
    chunk->stride = stride;
    chunk->bytes = bytes;
    for (size_t i = fibers_per_chunk; i-- > 0;) {
        char* low = chunk->base + i * stride;
        // A stack without its guard page is only less protected, so a failure (too many mappings) is not an error.
        (void)mprotect(low, page_bytes(), PROT_NONE);
        // Stacks that start at the same page offset compete for the same cache sets. With 1024 threads this makes
        // execution four times slower. So each stack starts at another page offset.
        size_t number = count_ + i;
        chunk->fibers[i].low = low + page_bytes();
        chunk->fibers[i].top = low + stride - (number % 61) * 448;
        chunk->fibers[i].top -= reinterpret_cast<uintptr_t>(chunk->fibers[i].top) % 64;
        give(&chunk->fibers[i]);
    }
    count_ += fibers_per_chunk;
    chunk->next = chunks_;
    chunks_ = chunk;
    return true;
}

void FiberPool::unmap() {
    while (chunks_) {
        Chunk* next = chunks_->next;
        munmap(chunks_->base, chunks_->bytes);
        free(chunks_);
        chunks_ = next;
    }
    free_ = nullptr;
    count_ = 0;
}

}  // namespace sim
