// Registration of __device__ and __constant__ variables, so that they have bounds and can be found by symbol.
#pragma once

#include <stddef.h>

#pragma GCC visibility push(default)
namespace sim {

enum class GlobalKind : int { device, constant };

// A static object of this type accompanies each variable at namespace scope.
struct RegisterGlobal {
    // `named`: host code uses the variable's name, so the variable needs a host copy.
    RegisterGlobal(const char* name, void* address, size_t bytes, GlobalKind kind, bool named = false) noexcept;
    ~RegisterGlobal();
    RegisterGlobal(const RegisterGlobal&) = delete;
    RegisterGlobal& operator=(const RegisterGlobal&) = delete;

  private:
    void* address_;
};

// The front end uses this in the declaration of a variable template. It refers to the registration object, so that each
// instantiation is registered.
template <RegisterGlobal* registered>
struct Known {
    static constexpr size_t alignment = 256;
};

// Returns the host copy of a device variable. As with nvcc, the variable's name refers to this copy in host code.
// Kernels do not access the copy.
void* host_name_of(void* variable) noexcept;
template <typename T>
T& host_name(T& variable) {
    return *reinterpret_cast<T*>(host_name_of((void*)&variable));
}

// Red zones around the variables of one declaration: unused bytes in each section that the compiler may use for them,
// so that an access past the end of one does not land in the next. Those among constants are registered, because an
// access there looks like one to a table of the compiler's own.
constexpr size_t zone_bytes = 256;
struct RegisterZone {
    explicit RegisterZone(const char* zone) noexcept;
    ~RegisterZone();
    RegisterZone(const RegisterZone&) = delete;
    RegisterZone& operator=(const RegisterZone&) = delete;

  private:
    const char* zone_;
};

// A static object of this type accompanies each kernel with __cluster_dims__.
struct RegisterClusters {
    RegisterClusters(const void* kernel, unsigned x, unsigned y = 1, unsigned z = 1) noexcept;
    ~RegisterClusters();
    RegisterClusters(const RegisterClusters&) = delete;
    RegisterClusters& operator=(const RegisterClusters&) = delete;

  private:
    const void* kernel_;
};

// Launches a kernel that is known only by its address. arguments[i] points to the i-th argument.
struct LaunchConfig;
using KernelLauncher = void (*)(const LaunchConfig& config, const char* name, void** arguments);
void register_kernel(const void* kernel, const char* name, KernelLauncher launcher) noexcept;

}  // namespace sim
#pragma GCC visibility pop

// An attribute that makes the compiler place variables in the order of the file.
#if defined(__clang__)
#define SIM_IN_ORDER __attribute__((used))
#else
#define SIM_IN_ORDER __attribute__((used, no_reorder))
#endif

// For several variables in one declaration, no red zone fits between them. A large alignment separates them.
#define SIM_SEVERAL_IN_ORDER SIM_IN_ORDER __attribute__((aligned(512)))

// Defines red zones. Compilers place static, zero-initialized and constant variables in separate sections, so each
// section needs its own zone.
#define SIM_ZONE(NAME)                                     \
    SIM_IN_ORDER char sim_zeros_##NAME[::sim::zone_bytes]; \
    SIM_INTERNAL_ZONE(NAME)
#define SIM_INTERNAL_ZONE(NAME)                                                   \
    SIM_IN_ORDER static char sim_own_zeros_##NAME[::sim::zone_bytes];             \
    SIM_IN_ORDER static char sim_values_##NAME[::sim::zone_bytes] = {1};          \
    SIM_IN_ORDER static const char sim_constants_##NAME[::sim::zone_bytes] = {1}; \
    static ::sim::RegisterZone sim_zone_##NAME(sim_constants_##NAME);
