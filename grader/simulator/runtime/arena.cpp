// Allocation in the arena.
//
// The arena has as much address space as the device has memory, or more. Freed memory is reused only when all of this
// space has been used once. Until then, a use after free accesses memory that belongs to no allocation, which the
// checks detect. The address space is only reserved, so only written pages use memory of the machine. The reservation
// is larger than the device's memory, because it also holds host memory that the device can access.
#include "arena.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "growable.h"
#include "registry.h"

namespace sim::arena {

namespace {

constexpr size_t alignment = 256;
constexpr size_t mebibyte = 1 << 20;
constexpr size_t reach = 16;  // size of the whole reservation, as a multiple of the device's memory
// Allocations up to this size are filled with 0xFF. Larger ones stay zero, which costs no memory until they are
// written: they may exceed this machine's memory.
constexpr size_t largest_filled = 256 * mebibyte;

struct Span {
    char* begin;  // start of the red zone in front
    char* base;
    size_t bytes;
    char* end;  // end of the red zone behind
    bool live;
    Home home;

    bool holds(const void* address, size_t count = 1) const {
        auto* byte = static_cast<const char*>(address);
        return live && byte >= base && byte + count <= base + bytes;
    }
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
size_t wanted_bytes = 0;  // size of device memory in bytes; 0: chosen at the first use
char* region = nullptr;
size_t region_bytes = 0;
size_t device_bytes = 0;  // bytes of the reservation that are device memory
size_t red_zone = 0;
char* frontier = nullptr;  // start of the memory that has not been used yet
Growable<Span> spans;      // sorted by address
size_t live_bytes = 0;     // bytes of live allocations on the device
size_t heap_limit = 8 * mebibyte, live_heap_bytes = 0;
bool host_protected = false;
bool device_closed = false;

// Returns the size of the reservation. If address space is limited (in the runner of an untrusted kernel), the arena
// takes an eighth of it: the checks keep several bytes per byte of device memory, and stacks need room too.
size_t bytes_to_reserve() {
    rlimit limit;
    bool scarce = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    size_t eighth = scarce ? static_cast<size_t>(limit.rlim_cur) / 8 : 0;
    device_bytes = wanted_bytes             ? wanted_bytes
                   : !scarce                ? 8192 * mebibyte
                   : eighth < 16 * mebibyte ? 16 * mebibyte
                                            : eighth;
    return scarce ? device_bytes : device_bytes * reach;
}

bool reserve() {
    if (region) return true;
    for (size_t bytes = bytes_to_reserve(); bytes >= mebibyte; bytes /= 2) {
        void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) continue;
        region = frontier = static_cast<char*>(base);
        region_bytes = bytes;
        if (device_bytes > bytes) device_bytes = bytes;
        // An index that is off by a row or two should not land in a neighboring allocation; a large red zone costs only
        // address space.
        red_zone = device_bytes >= 1024 * mebibyte ? 65536 : 4096;
        return true;
    }
    return false;
}

size_t index_of(const void* base) {  // index of the live span that starts at base; spans.size() if there is none
    size_t low = partition_point(spans.size(), [=](size_t i) { return spans[i].base < base; });
    return low < spans.size() && spans[low].base == base && spans[low].live ? low : spans.size();
}

struct Pages {
    uintptr_t begin, end;
};

// Returns an allocation's own pages; its other pages are red zones.
Pages pages_of(const Span& span) {
    auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto base = reinterpret_cast<uintptr_t>(span.base);
    return {base & ~(page - 1), (base + span.bytes + page - 1) & ~(page - 1)};
}

void protect(const Span& span, int protection) {
    Pages pages = pages_of(span);
    mprotect(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, protection);
}

// Resets memory to its state before the first use and returns its pages to the system.
void forget(const Span& span) {
    auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto begin = reinterpret_cast<uintptr_t>(span.begin) & ~(page - 1);
    auto end = reinterpret_cast<uintptr_t>(span.end) & ~(page - 1);
    // The page at `begin` may be shared with the previous span, so it is kept. It holds only red zone of this span,
    // because a red zone is larger than a page.
    madvise(reinterpret_cast<void*>(begin + page), end - begin - page, MADV_DONTNEED);
}

void set_closed(bool closed) {
    device_closed = closed;
    if (!region) return;
    mprotect(region, region_bytes, closed ? PROT_NONE : PROT_READ | PROT_WRITE);
    for (const Span& span : spans)
        if (closed && span.live && span.home == Home::host) protect(span, PROT_READ | PROT_WRITE);
}

// Freed spans at the end of the list become untouched space again; neighboring freed spans are merged.
void merge_free_spans() {
    size_t kept = 0;
    for (const Span& span : spans) {
        if (kept && !span.live && !spans[kept - 1].live)
            spans[kept - 1].end = span.end;
        else
            spans[kept++] = span;
    }
    spans.truncate(kept);
    if (spans.empty() || spans.back().live) return;
    frontier = spans.back().begin;
    spans.truncate(spans.size() - 1);
}

Span layout(char* begin, size_t bytes, size_t offset, Home home) {
    // Allocations on the device heap have small red zones, because kernels allocate many small blocks.
    size_t zone = home == Home::heap ? alignment : red_zone;
    auto first = reinterpret_cast<uintptr_t>(begin) + zone;
    first = (first + alignment - 1) / alignment * alignment + offset;
    auto end = (first + bytes + zone + alignment - 1) / alignment * alignment;
    return {begin, reinterpret_cast<char*>(first), bytes, reinterpret_cast<char*>(end), true, home};
}

// Places the allocation in freed space; returns false when no gap is large enough.
bool reuse(size_t bytes, size_t offset, Home home, Span* result) {
    merge_free_spans();
    for (size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].live) continue;
        Span span = layout(spans[i].begin, bytes, offset, home);
        if (span.end > spans[i].end) continue;
        Span rest = spans[i];
        rest.begin = rest.base = span.end;
        rest.bytes = 0;
        if (rest.begin < rest.end) spans.insert(i + 1, rest);
        spans[i] = span;
        *result = span;
        return true;
    }
    return false;
}

}  // namespace

char* allocate(size_t bytes, size_t offset, Home home) {
    MutexLock guard(lock);
    if (!reserve() || bytes > region_bytes) return nullptr;
    if (home == Home::device && bytes > device_bytes - live_bytes) return nullptr;
    if (home == Home::heap && (live_heap_bytes > heap_limit || bytes > heap_limit - live_heap_bytes)) return nullptr;
    Span span = layout(frontier, bytes, offset, home);
    if (span.end > region + device_bytes && !reuse(bytes, offset, home, &span)) {
        // reuse() merges freed spans, which may have moved the frontier back.
        span = layout(frontier, bytes, offset, home);
        if (span.end > region + region_bytes) return nullptr;
    }
    if (span.begin == frontier) {
        spans.push(span);
        frontier = span.end;
    }
    if (home == Home::device) live_bytes += bytes;
    if (home == Home::heap) live_heap_bytes += bytes;
    bool closed = device_closed;
    if (closed) set_closed(false);
    if (bytes > largest_filled)
        forget(span);
    else
        memset(span.base, 0xff, bytes);
    if (closed) set_closed(true);
    return span.base;
}

bool find(const void* base, size_t* bytes) {
    MutexLock guard(lock);
    size_t i = index_of(base);
    if (i == spans.size()) return false;
    *bytes = spans[i].bytes;
    return true;
}

bool contains(const void* address, size_t bytes) {
    MutexLock guard(lock);
    for (const Span& span : spans)
        if (span.holds(address, bytes)) return true;
    return false;
}

void protect_host_memory() {
    MutexLock guard(lock);
    for (const Span& span : spans)
        if (span.live && span.home == Home::host) protect(span, PROT_NONE);
    host_protected = true;
}

bool unprotect_host_memory(const void* address) {
    MutexLock guard(lock);
    bool within = false;
    for (const Span& span : spans) {
        if (!span.live || span.home != Home::host) continue;
        // An access just past the allocation also faults only because of the protection.
        Pages pages = pages_of(span);
        within = within || (reinterpret_cast<uintptr_t>(address) - pages.begin < pages.end - pages.begin);
        if (host_protected) protect(span, PROT_READ | PROT_WRITE);
    }
    host_protected = false;
    return within;
}

bool release(void* base, size_t* bytes, bool from_heap) {
    MutexLock guard(lock);
    size_t i = index_of(base);
    if (i == spans.size() || (spans[i].home == Home::heap) != from_heap) return false;
    *bytes = spans[i].bytes;
    if (host_protected && spans[i].home == Home::host) protect(spans[i], PROT_READ | PROT_WRITE);
    if (spans[i].home == Home::device) live_bytes -= spans[i].bytes;
    if (from_heap) live_heap_bytes -= spans[i].bytes;
    if (spans[i].bytes > largest_filled) forget(spans[i]);
    spans[i].live = false;
    if (device_closed && spans[i].home == Home::host) protect(spans[i], PROT_NONE);
    return true;
}

void close_device_memory() {
    MutexLock guard(lock);
    set_closed(true);
}

void open_device_memory() {
    MutexLock guard(lock);
    set_closed(false);
}

bool is_closed(const void* address) {
    if (!device_closed) return false;
    MutexLock guard(lock);
    const char* byte = static_cast<const char*>(address);
    if (byte < region || byte >= region + region_bytes) return false;
    for (const Span& span : spans)
        if (span.home == Home::host && span.holds(address)) return false;
    return true;
}

DeviceMemoryAccess::DeviceMemoryAccess() : was_closed_(device_closed) {
    if (was_closed_) open_device_memory();
}

DeviceMemoryAccess::~DeviceMemoryAccess() {
    if (was_closed_) close_device_memory();
}

void release_all() {
    MutexLock guard(lock);
    // Returns the pages to the system, so that a long notebook does not keep all memory that it ever allocated.
    if (region && frontier > region) madvise(region, static_cast<size_t>(frontier - region), MADV_DONTNEED);
    frontier = region;
    spans.clear();
    live_bytes = live_heap_bytes = 0;
}

bool set_megabytes(size_t megabytes) {
    MutexLock guard(lock);
    if (region || megabytes == 0) return false;
    wanted_bytes = megabytes * mebibyte;
    return true;
}

size_t total_bytes() {
    MutexLock guard(lock);
    return reserve() ? device_bytes : 0;
}

size_t free_bytes() {
    MutexLock guard(lock);
    return reserve() ? device_bytes - live_bytes : 0;
}

size_t heap_bytes() {
    MutexLock guard(lock);
    return heap_limit;
}

void set_heap_bytes(size_t bytes) {
    MutexLock guard(lock);
    heap_limit = bytes;
}

size_t reserved_bytes() {
    MutexLock guard(lock);
    return reserve() ? region_bytes : 0;
}

}  // namespace sim::arena

namespace sim {

ArenaRange arena_range() { return {arena::region, arena::region_bytes}; }

}  // namespace sim
