// The containers that only the checks need, for trivially copyable values.
#pragma once

#include <sched.h>

#include "runtime/growable.h"

namespace sim::checks {

using ::sim::Growable;
using ::sim::zeros;

inline uint64_t mix(uint64_t key) {
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 29;
}

// A hash map from nonzero keys to values. Values move when it grows; single entries are never removed.
template <typename V>
class HashMap {
  public:
    HashMap() = default;
    HashMap(const HashMap&) = delete;
    HashMap& operator=(const HashMap&) = delete;
    ~HashMap() { free(slots_); }

    V* find(uint64_t key) {
        if (!capacity_) return nullptr;
        Slot& slot = slots_[place(key)];
        return slot.key ? &slot.value : nullptr;
    }
    // Returns the value of the key, zero-initialized if it is new.
    V& at(uint64_t key) {
        assert(key != 0);
        if (4 * (size_ + 1) > 3 * capacity_) grow();
        Slot& slot = slots_[place(key)];
        if (!slot.key) {
            slot.key = key;
            ++size_;
        }
        return slot.value;
    }
    void clear() {
        if (size_) memset(static_cast<void*>(slots_), 0, capacity_ * sizeof(Slot));
        size_ = 0;
    }
    size_t size() const { return size_; }
    template <typename F>
    void each(F visit) {
        for (size_t i = 0; i < capacity_; ++i)
            if (slots_[i].key) visit(slots_[i].key, slots_[i].value);
    }

  private:
    struct Slot {
        uint64_t key;
        V value;
    };
    size_t place(uint64_t key) const {
        size_t i = mix(key) & (capacity_ - 1);
        while (slots_[i].key && slots_[i].key != key) i = (i + 1) & (capacity_ - 1);
        return i;
    }
    void grow() {
        Slot* old = slots_;
        size_t old_capacity = capacity_;
        capacity_ = capacity_ ? 2 * capacity_ : 16;
        slots_ = zeros<Slot>(capacity_);
        for (size_t i = 0; i < old_capacity; ++i)
            if (old[i].key) slots_[place(old[i].key)] = old[i];
        free(old);
    }
    Slot* slots_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// Memory that is freed all at once.
class Pool {
  public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { clear(); }

    void* take(size_t bytes) {
        bytes = (bytes + 15) & ~size_t(15);
        if (bytes > left_) refill(bytes);
        char* taken = next_;
        next_ += bytes;
        left_ -= bytes;
        return taken;
    }
    template <typename T>
    T* take(size_t count = 1) {
        return static_cast<T*>(take(count * sizeof(T)));
    }
    void clear() {
        while (chunks_) {
            Chunk* chunk = chunks_;
            chunks_ = chunk->previous;
            free(chunk);
        }
        left_ = 0;
    }

  private:
    struct alignas(16) Chunk {
        Chunk* previous;
    };
    void refill(size_t bytes) {
        size_t size = bytes > 60 * 1024 ? bytes : 60 * 1024;
        Chunk* chunk = static_cast<Chunk*>(malloc(sizeof(Chunk) + size));
        if (!chunk) no_memory();
        chunk->previous = chunks_;
        chunks_ = chunk;
        next_ = reinterpret_cast<char*>(chunk + 1);
        left_ = size;
    }
    Chunk* chunks_ = nullptr;
    char* next_ = nullptr;
    size_t left_ = 0;
};

// A lock that is held for nanoseconds.
class SpinLock {
  public:
    void lock() {
        while (__atomic_exchange_n(&held_, true, __ATOMIC_ACQUIRE)) {
            for (unsigned turn = 0; __atomic_load_n(&held_, __ATOMIC_RELAXED); ++turn)
                if (turn > 100) sched_yield();  // the holder of the lock may not be running
        }
    }
    // For use after a launch was aborted, possibly by a holder of the lock.
    void reset() { held_ = false; }
    void unlock() { __atomic_store_n(&held_, false, __ATOMIC_RELEASE); }

  private:
    bool held_ = false;
};

class Locked {
  public:
    explicit Locked(SpinLock& lock) : lock_(lock) { lock_.lock(); }
    ~Locked() { lock_.unlock(); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

  private:
    SpinLock& lock_;
};

}  // namespace sim::checks
