// A list for the entries that kernel libraries register. They do so in static constructors, before any constructor of
// libsim has run, so a list is valid when it is all zeros. The caller holds the lock.
#pragma once

#include <pthread.h>
#include <stdlib.h>

namespace sim {

template <typename T>
struct Registry {
    T* items;
    size_t count, capacity;

    T* begin() { return items; }
    T* end() { return items + count; }

    // Returns the new entry, or null when out of memory.
    T* add(const T& item) {
        if (count == capacity) {
            size_t wanted = capacity ? capacity * 2 : 16;
            void* moved = realloc(static_cast<void*>(items), wanted * sizeof(T));
            if (!moved) return nullptr;
            items = static_cast<T*>(moved);
            capacity = wanted;
        }
        items[count] = item;
        return &items[count++];
    }
    template <typename Matches>
    T* find(Matches matches) {
        for (T& item : *this)
            if (matches(item)) return &item;
        return nullptr;
    }
    template <typename Matches>
    void remove(Matches matches) {
        if (T* item = find(matches)) *item = items[--count];
    }
};

class MutexLock {
  public:
    explicit MutexLock(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
    ~MutexLock() { pthread_mutex_unlock(&mutex_); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

  private:
    pthread_mutex_t& mutex_;
};

}  // namespace sim
