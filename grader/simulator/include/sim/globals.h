// Registration of __device__ and __constant__ variables, so that they have bounds and can be found by symbol.
#pragma once

#include <stddef.h>

#pragma GCC visibility push(default)
namespace sim {

enum class GlobalKind : int { device, constant };

// A static object of this type stands behind each variable at namespace scope.
struct RegisterGlobal {
    RegisterGlobal(const char* name, void* address, size_t bytes, GlobalKind kind) noexcept;
    ~RegisterGlobal();
    RegisterGlobal(const RegisterGlobal&) = delete;
    RegisterGlobal& operator=(const RegisterGlobal&) = delete;

  private:
    void* address_;
};

// A static object of this type stands behind each kernel that is no template, so that cudaLaunchCooperativeKernel finds
// it from a plain pointer.
void register_kernel(const void* kernel, const char* name, void (*call)(const void* kernel, void** arguments)) noexcept;

}  // namespace sim
#pragma GCC visibility pop
