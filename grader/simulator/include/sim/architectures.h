// The limits of each GPU generation: one row per compute capability, from the table of technical specifications in the
// CUDA C++ Programming Guide. The simulated device is one of them.
#pragma once

#include <stddef.h>

// The compute capability of the simulated device, times ten. grader/frontend/ptx_instructions.py also reads this line.
// The build (grader/execution/build/build.py) defines another number for kernel files of another architecture.
#ifndef SIM_SM
#define SIM_SM 90
#endif

namespace sim {

struct Architecture {
    unsigned sm;  // 90: compute capability 9.0
    unsigned sm_threads;
    unsigned sm_blocks;
    unsigned registers;       // 32-bit registers of an SM, and the maximum of a block
    unsigned sm_shared;       // KB
    unsigned block_shared;    // KB, with cudaFuncAttributeMaxDynamicSharedMemorySize
    unsigned banks;           // banks of shared memory, 4 bytes wide
    unsigned cluster_blocks;  // maximum for a cluster, including non-portable sizes; 0: no clusters
};

constexpr Architecture architectures[] = {
    // sm, threads, blocks, registers, shared memory of an SM and of a block, banks, blocks of a cluster
    {80, 2048, 32, 65536, 164, 163, 32, 0},    // A100
    {86, 1536, 16, 65536, 100, 99, 32, 0},     // RTX 30
    {89, 1536, 24, 65536, 100, 99, 32, 0},     // RTX 40, L4
    {90, 2048, 32, 65536, 228, 227, 32, 16},   // H100, H200
    {100, 2048, 32, 65536, 228, 227, 32, 16},  // B200
    {120, 1536, 24, 65536, 100, 99, 32, 8},    // RTX 50
};

constexpr const Architecture& architecture(unsigned sm) {
    const Architecture* row = architectures;
    while (row->sm != sm) ++row;  // a compute capability without a row is a compile-time error
    return *row;
}

constexpr Architecture simulated = architecture(SIM_SM);

// libsim is compiled once, with the limits of Hopper. So the other architecture that can be simulated (Blackwell) must
// have the same limits.
constexpr bool same_limits(const Architecture& x, const Architecture& y) {
    return x.sm_threads == y.sm_threads && x.sm_blocks == y.sm_blocks && x.registers == y.registers &&
           x.sm_shared == y.sm_shared && x.block_shared == y.block_shared && x.banks == y.banks &&
           x.cluster_blocks == y.cluster_blocks;
}
// Called by the entry point before a launcher: sets which of the two architectures the device has.
#pragma GCC visibility push(default)
void set_compute_capability(unsigned sm);
#pragma GCC visibility pop
unsigned compute_capability();

static_assert(same_limits(architecture(90), architecture(100)), "Hopper and Blackwell differ in their instructions");

}  // namespace sim
