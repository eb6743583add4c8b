// The limits of the simulated device: those of its architecture, with fewer SMs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/architectures.h"

namespace sim::limits {

constexpr unsigned block_threads = 1024;
// the largest portable cluster size in blocks; 16 needs cudaFuncAttributeNonPortableClusterSizeAllowed
constexpr unsigned portable_cluster = 8;
constexpr unsigned block_x = 1024, block_y = 1024, block_z = 64;
constexpr uint64_t grid_x = 2147483647, grid_y = 65535, grid_z = 65535;

constexpr size_t static_shared = 48 << 10;             // limit of static arrays; ptxas reports an error above it
constexpr size_t shared_without_attribute = 48 << 10;  // static + dynamic, unless the kernel asks for more
constexpr size_t shared_with_attribute = simulated.block_shared << 10;
constexpr size_t sm_shared = simulated.sm_shared << 10;
constexpr size_t reserved_shared = 1 << 10;  // bytes of the SM's shared memory that each block occupies in addition

constexpr unsigned sm_threads = simulated.sm_threads;
constexpr unsigned sm_blocks = simulated.sm_blocks;
constexpr unsigned registers = simulated.registers;  // registers of an SM, and the maximum of a block
constexpr unsigned sms = 8;                          // few, so that a grid that fills the device is quick to simulate

constexpr size_t constant_memory = 64 << 10;
constexpr size_t printf_buffer = 1 << 20;

// Returns the number of blocks of this shape that one SM holds at once. Registers are not known here and not counted.
unsigned blocks_per_sm(unsigned threads, size_t shared_bytes);

// Records whether a library, given by its base address, ever queried the number of SMs: its grids may differ on a GPU.
// `caller` is an address in the library.
void note_question(const void* caller);
bool has_asked(const void* library);

}  // namespace sim::limits
