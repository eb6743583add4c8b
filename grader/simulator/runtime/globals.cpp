// __device__ and __constant__ variables, and kernels that can be launched through a plain pointer.
#include "submission_sandbox/sandbox.h"
#include "sim/globals.h"

#include <string.h>
#include <sys/mman.h>

#include "kernels.h"
#include "registry.h"
#include "thread.h"

namespace sim {

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
struct ClusterDimensions {
    const void* kernel;
    dim3 blocks;
};
Registry<GlobalVariable> variables;
Registry<const char*> zones;
Registry<ClusterDimensions> clusters;
Registry<RegisteredKernel> kernels;

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

// Stores a copy of the first matching entry in `found`. Returns false if there is none.
template <typename T, typename Matches>
bool find_in(Registry<T>& registry, T* found, Matches matches) {
    MutexLock lock(mutex);
    const T* item = registry.find(matches);
    if (item) *found = *item;
    return item;
}

}  // namespace

uintptr_t host_names_base = 0;
size_t host_names_bytes = 0;

RegisterGlobal::RegisterGlobal(const char* name, void* address, size_t bytes, GlobalKind kind, bool named) noexcept
    : address_(address) {
    sandbox::check_variable(address, bytes, __builtin_return_address(0));
    MutexLock lock(mutex);
    char* base = static_cast<char*>(address);
    char* copy = named ? copy_for_host(base, bytes) : nullptr;
    variables.add({name, base, bytes, kind == GlobalKind::constant, copy});
}

// Called when the library with the variable is unloaded.
RegisterGlobal::~RegisterGlobal() {
    MutexLock lock(mutex);
    variables.remove([this](const GlobalVariable& one) { return one.base == address_; });
}

bool find_global(const void* address, GlobalVariable* found) {
    const char* byte = static_cast<const char*>(address);
    return find_in(variables, found,
                   [=](const GlobalVariable& one) { return byte >= one.base && byte < one.base + one.bytes; });
}

bool find_host_name(const void* address, GlobalVariable* found) {
    if (reinterpret_cast<uintptr_t>(address) - host_names_base >= host_names_bytes) return false;
    const char* byte = static_cast<const char*>(address);
    return find_in(variables, found,
                   [=](const GlobalVariable& one) { return byte >= one.on_host && byte < one.on_host + one.bytes; });
}

void* host_name_of(void* variable) noexcept {
    GlobalVariable found;
    bool copied = !current_thread && find_global(variable, &found) && found.on_host;
    return copied ? found.on_host + (static_cast<char*>(variable) - found.base) : variable;
}

RegisterClusters::RegisterClusters(const void* kernel, unsigned x, unsigned y, unsigned z) noexcept : kernel_(kernel) {
    MutexLock lock(mutex);
    clusters.add({kernel, dim3(x, y, z)});
}

RegisterClusters::~RegisterClusters() {
    MutexLock lock(mutex);
    clusters.remove([this](const ClusterDimensions& one) { return one.kernel == kernel_; });
}

dim3 cluster_dimensions_of(const void* kernel) {
    ClusterDimensions found = {nullptr, dim3(0, 0, 0)};
    find_in(clusters, &found, [=](const ClusterDimensions& one) { return one.kernel == kernel; });
    return found.blocks;
}

RegisterZone::RegisterZone(const char* zone) noexcept : zone_(zone) {
    MutexLock lock(mutex);
    zones.add(zone);
}

RegisterZone::~RegisterZone() {
    MutexLock lock(mutex);
    zones.remove([this](const char* zone) { return zone == zone_; });
}

bool in_zone(const void* address) {
    if (__atomic_load_n(&zones.count, __ATOMIC_RELAXED) == 0) return false;
    const char *byte = static_cast<const char*>(address), *zone;
    return find_in(zones, &zone, [=](const char* one) { return byte >= one && byte < one + zone_bytes; });
}

size_t list_globals(GlobalVariable* list, size_t room) {
    MutexLock lock(mutex);
    if (variables.count < room) room = variables.count;
    if (room) memcpy(list, variables.items, room * sizeof(GlobalVariable));
    return variables.count;
}

void register_kernel(const void* kernel, const char* name, KernelLauncher launcher) noexcept {
    sandbox::check_function(reinterpret_cast<const void*>(launcher), __builtin_return_address(0));
    MutexLock lock(mutex);
    kernels.remove([=](const RegisteredKernel& one) { return one.kernel == kernel; });
    kernels.add({kernel, name, launcher});
}

bool find_kernel(const void* kernel, RegisteredKernel* found) {
    return find_in(kernels, found, [=](const RegisteredKernel& one) { return one.kernel == kernel; });
}

}  // namespace sim
