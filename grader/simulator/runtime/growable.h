// A growable array for trivially copyable values, lists and a binary search. The standard containers would dominate the
// time to build this library, which a user's first check waits for.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace sim {

// Ends the process, because the system refused memory for the simulator's own state.
[[noreturn]] __attribute__((cold, noinline)) inline void no_memory() {
    constexpr char text[] = "the simulator is out of memory: use smaller sizes, or close other programs\n";
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    abort();
}

// Returns memory for `count` objects, filled with zeros. free() frees it.
template <typename T>
T* zeros(size_t count = 1) {
    void* memory = calloc(count, sizeof(T));
    if (!memory) no_memory();
    return static_cast<T*>(memory);
}

// A growable array. Elements move when it grows.
template <typename T>
class Growable {
  public:
    Growable() = default;
    Growable(const Growable&) = delete;
    Growable& operator=(const Growable&) = delete;
    ~Growable() { free(data_); }

    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    T& back() { return data_[size_ - 1]; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    T& push(const T& value) {
        if (size_ == capacity_) {
            T copy = value;  // the value may be an element of this array, which moves
            reserve(capacity_ ? 2 * capacity_ : 8);
            return data_[size_++] = copy;
        }
        return data_[size_++] = value;
    }
    void append(const T* values, size_t count) {
        reserve(size_ + count);
        memcpy(static_cast<void*>(data_ + size_), values, count * sizeof(T));
        size_ += count;
    }
    void insert(size_t place, const T& value) {
        assert(place <= size_);
        push(value);
        for (size_t i = size_ - 1; i > place; --i) data_[i] = data_[i - 1];
        data_[place] = value;
    }
    void remove(size_t place) {
        assert(place < size_);
        for (size_t i = place + 1; i < size_; ++i) data_[i - 1] = data_[i];
        --size_;
    }
    void remove_unordered(size_t place) {
        assert(place < size_);
        data_[place] = data_[--size_];
    }
    // Keeps the elements for which keeps(element) is true, in their order.
    template <typename F>
    void keep(F keeps) {
        size_t kept = 0;
        for (size_t i = 0; i < size_; ++i)
            if (keeps(data_[i])) data_[kept++] = data_[i];
        size_ = kept;
    }
    void truncate(size_t size) {
        assert(size <= size_);
        size_ = size;
    }
    void clear() { size_ = 0; }
    void reserve(size_t capacity) {
        if (capacity <= capacity_) return;
        if (capacity < 2 * capacity_) capacity = 2 * capacity_;
        T* grown = static_cast<T*>(realloc(static_cast<void*>(data_), capacity * sizeof(T)));
        if (!grown) no_memory();
        data_ = grown;
        capacity_ = capacity;
    }

  private:
    T* data_ = nullptr;
    size_t size_ = 0;
    size_t capacity_ = 0;
};

// Removes an item from a list that the items' `next` link. Returns whether the list had it.
template <typename T>
bool take_out(T*& first, const T* item) {
    T** link = &first;
    while (*link && *link != item) link = &(*link)->next;
    if (!*link) return false;
    *link = item->next;
    return true;
}

// Returns the first index below `count` for which comes_before(index) is false, or `count`. It is true for all indices
// before the result, and false from there on.
template <typename F>
size_t partition_point(size_t count, F comes_before) {
    size_t low = 0;
    while (low < count) {
        size_t middle = (low + count) / 2;
        if (comes_before(middle))
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

}  // namespace sim
