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

// The locks that this thread holds or waits for. Meanwhile the watchdog must neither end a launch nor run another fiber.
// The address of the code does not tell: in a program, pthread_mutex_lock is a function of the program
// (grader/execution/programs/start.cpp). Count each lock that a kernel's thread can take.
inline __thread volatile unsigned locks_held __attribute__((tls_model("initial-exec"))) = 0;

inline void lock_mutex(pthread_mutex_t& mutex) {
    locks_held = locks_held + 1;
    pthread_mutex_lock(&mutex);
}

inline void unlock_mutex(pthread_mutex_t& mutex) {
    pthread_mutex_unlock(&mutex);
    locks_held = locks_held - 1;
}

class MutexLock {
  public:
    explicit MutexLock(pthread_mutex_t& mutex) : mutex_(mutex) { lock_mutex(mutex_); }
    ~MutexLock() { unlock_mutex(mutex_); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

  private:
    pthread_mutex_t& mutex_;
};

}  // namespace sim
