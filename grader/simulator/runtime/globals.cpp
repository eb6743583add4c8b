// __device__ and __constant__ variables, and kernels that can be launched through a plain pointer.
//
// Kernel libraries register them in static constructors, before any constructor of libsim has run. So the tables are
// plain arrays without constructors.
#include "submission_sandbox/sandbox.h"
#include "sim/globals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels.h"
#include "thread.h"

namespace sim {

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
GlobalVariable* variables = nullptr;
size_t variable_count = 0, variable_capacity = 0;
const char** zones = nullptr;
size_t zone_count = 0, zone_capacity = 0;
struct ClusterDimensions {
    const void* kernel;
    dim3 blocks;
};
ClusterDimensions* clusters = nullptr;
size_t cluster_count = 0, cluster_capacity = 0;
RegisteredKernel* kernels = nullptr;
size_t kernel_count = 0, kernel_capacity = 0;

template <typename T>
bool make_room(T*& items, size_t count, size_t& capacity) {
    if (count < capacity) return true;
    size_t wanted = capacity ? capacity * 2 : 16;
    void* moved = realloc(static_cast<void*>(items), wanted * sizeof(T));
    if (!moved) return false;
    items = static_cast<T*>(moved);
    capacity = wanted;
    return true;
}

constexpr size_t host_names_room = size_t(64) << 20;

// Makes the host copy of a variable, with its value before the program begins. Pages of zeros take no memory. Returns
// null when out of memory.
char* copy_for_host(const char* from, size_t bytes) {
    constexpr size_t page = 4096;
    if (!host_names_base) {
        void* made =
            mmap(nullptr, host_names_room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return nullptr;
        host_names_base = reinterpret_cast<uintptr_t>(made);
    }
    size_t start = (host_names_bytes + 255) / 256 * 256;
    if (bytes > host_names_room - page || start > host_names_room - page - bytes) return nullptr;
    host_names_bytes = start + bytes;
    char* to = reinterpret_cast<char*>(host_names_base) + start;
    for (size_t done = 0; done < bytes; done += page) {
        size_t count = bytes - done < page ? bytes - done : page;
        bool zeros = from[done] == 0 && memcmp(from + done, from + done + 1, count - 1) == 0;
        if (!zeros) memcpy(to + done, from + done, count);
    }
    return to;
}

template <typename Matches>
bool find_variable(GlobalVariable* found, Matches matches) {
    pthread_mutex_lock(&lock);
    bool known = false;
    for (size_t i = 0; i < variable_count && !known; ++i) {
        known = matches(variables[i]);
        if (known) *found = variables[i];
    }
    pthread_mutex_unlock(&lock);
    return known;
}

}  // namespace

uintptr_t host_names_base = 0;
size_t host_names_bytes = 0;

RegisterGlobal::RegisterGlobal(const char* name, void* address, size_t bytes, GlobalKind kind, bool named) noexcept
    : address_(address) {
    sandbox::check_variable(address, bytes, __builtin_return_address(0));
    pthread_mutex_lock(&lock);
    if (make_room(variables, variable_count, variable_capacity)) {
        char* base = static_cast<char*>(address);
        char* copy = named ? copy_for_host(base, bytes) : nullptr;
        variables[variable_count++] = {name, base, bytes, kind == GlobalKind::constant, copy};
    }
    pthread_mutex_unlock(&lock);
}

// Called when the library with the variable is unloaded.
RegisterGlobal::~RegisterGlobal() {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < variable_count; ++i) {
        if (variables[i].base != address_) continue;
        variables[i] = variables[--variable_count];
        break;
    }
    pthread_mutex_unlock(&lock);
}

bool find_global(const void* address, GlobalVariable* found) {
    const char* byte = static_cast<const char*>(address);
    return find_variable(found,
                         [=](const GlobalVariable& one) { return byte >= one.base && byte < one.base + one.bytes; });
}

bool find_host_name(const void* address, GlobalVariable* found) {
    if (reinterpret_cast<uintptr_t>(address) - host_names_base >= host_names_bytes) return false;
    const char* byte = static_cast<const char*>(address);
    return find_variable(
        found, [=](const GlobalVariable& one) { return byte >= one.on_host && byte < one.on_host + one.bytes; });
}

void* host_name_of(void* variable) noexcept {
    GlobalVariable found;
    bool copied = !current_thread && find_global(variable, &found) && found.on_host;
    return copied ? found.on_host + (static_cast<char*>(variable) - found.base) : variable;
}

RegisterClusters::RegisterClusters(const void* kernel, unsigned x, unsigned y, unsigned z) noexcept : kernel_(kernel) {
    pthread_mutex_lock(&lock);
    if (make_room(clusters, cluster_count, cluster_capacity)) clusters[cluster_count++] = {kernel, dim3(x, y, z)};
    pthread_mutex_unlock(&lock);
}

RegisterClusters::~RegisterClusters() {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < cluster_count; ++i) {
        if (clusters[i].kernel != kernel_) continue;
        clusters[i] = clusters[--cluster_count];
        break;
    }
    pthread_mutex_unlock(&lock);
}

dim3 cluster_dimensions_of(const void* kernel) {
    dim3 blocks(0, 0, 0);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < cluster_count; ++i)
        if (clusters[i].kernel == kernel) blocks = clusters[i].blocks;
    pthread_mutex_unlock(&lock);
    return blocks;
}

RegisterZone::RegisterZone(const char* zone) noexcept : zone_(zone) {
    pthread_mutex_lock(&lock);
    if (make_room(zones, zone_count, zone_capacity)) zones[zone_count++] = zone;
    pthread_mutex_unlock(&lock);
}

RegisterZone::~RegisterZone() {
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < zone_count && zones[i] != zone_) ++i;
    if (i < zone_count) zones[i] = zones[--zone_count];
    pthread_mutex_unlock(&lock);
}

bool in_zone(const void* address) {
    if (__atomic_load_n(&zone_count, __ATOMIC_RELAXED) == 0) return false;
    const char* byte = static_cast<const char*>(address);
    pthread_mutex_lock(&lock);
    bool found = false;
    for (size_t i = 0; i < zone_count && !found; ++i) found = byte >= zones[i] && byte < zones[i] + zone_bytes;
    pthread_mutex_unlock(&lock);
    return found;
}

size_t list_globals(GlobalVariable* list, size_t room) {
    pthread_mutex_lock(&lock);
    size_t count = variable_count;
    if (count < room) room = count;
    if (room) memcpy(list, variables, room * sizeof(GlobalVariable));
    pthread_mutex_unlock(&lock);
    return count;
}

void register_kernel(const void* kernel, const char* name, KernelLauncher launcher) noexcept {
    sandbox::check_function(reinterpret_cast<const void*>(launcher), __builtin_return_address(0));
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < kernel_count && kernels[i].kernel != kernel) ++i;
    if (i < kernel_count || make_room(kernels, kernel_count, kernel_capacity)) {
        kernels[i] = {kernel, name, launcher};
        if (i == kernel_count) ++kernel_count;
    }
    pthread_mutex_unlock(&lock);
}

bool find_kernel(const void* kernel, RegisteredKernel* found) {
    pthread_mutex_lock(&lock);
    bool known = false;
    for (size_t i = 0; i < kernel_count && !known; ++i) {
        known = kernels[i].kernel == kernel;
        if (known) *found = kernels[i];
    }
    pthread_mutex_unlock(&lock);
    return known;
}

}  // namespace sim
