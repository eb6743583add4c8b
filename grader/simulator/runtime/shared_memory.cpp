// Shared memory: one mapping for each block's storage, static arrays first, then the dynamic buffer.
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#include <sys/mman.h>

#include "block_order.h"
#include "limits.h"
#include "misuse.h"
#include "registry.h"
#include "scheduler.h"
#include "sim/error_codes.h"
#include "sim/shared.h"

namespace sim {

namespace {

// A red zone follows each array, so that an index past the end does not reach the next array. Alignment to 128 bytes
// preserves the banks of the elements.
constexpr size_t array_alignment = 128;
constexpr size_t red_zone = 128;
constexpr size_t static_region = 256 << 10;  // room for 48 KB of arrays and their red zones
constexpr size_t dynamic_region = limits::shared_with_attribute + 4096;
constexpr size_t region = static_region + dynamic_region;

// In a kernel without static arrays, dynamic shared memory on a GPU starts at this offset, so programs may rely on this
// alignment.
constexpr size_t dynamic_alignment = 1024;

// The 32-bit addresses of shared memory that PTX sees:
// - The first address is not 0, so that a null pointer never refers to an array.
// - The dynamic buffer comes first, and the static arrays follow.
// - All memory that a block can use is below 2^18, because a wgmma matrix descriptor has 18 address bits.
// - The upper 8 bits of an address are the block's rank in its cluster.
constexpr uint32_t window_start = 1024;
constexpr unsigned rank_shift = 24;
static_assert(window_start + region < 1u << rank_shift, "a block's shared memory fits its part of the window");

pthread_mutex_t placing = PTHREAD_MUTEX_INITIALIZER;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Returns the first 32-bit address of the static arrays. It is after the dynamic buffer and a multiple of 1024, so that
// arrays keep their alignment.
uint32_t static_window(const Block& block) {
    return window_start + static_cast<uint32_t>(round_up(block.launch->dynamic_shared_bytes, 1024)) + 1024;
}

// Assigns an offset to the array for the rest of the launch.
void place(SharedSlot& slot, const char* name, size_t alignment, Grid& grid) {
    if (grid.helped) in_block_order("its shared arrays are placed in order of first use");
    lock_mutex(placing);
    if (__atomic_load_n(&slot.launch, __ATOMIC_ACQUIRE) == grid.id) {  // another worker has assigned it first
        unlock_mutex(placing);
        return;
    }
    if (alignment < slot.alignment) alignment = slot.alignment;
    size_t packed = round_up(grid.static_shared_bytes, alignment < 16 ? alignment : 16) + slot.bytes;
    size_t offset = round_up(grid.static_extent + red_zone, alignment < array_alignment ? array_alignment : alignment);
    size_t end = offset + slot.bytes;
    const char* excess = nullptr;
    if (packed > limits::static_shared) {
        excess = "the kernel's static shared arrays exceed 48 KB: use dynamic shared memory";
    } else if (packed + grid.dynamic_shared_bytes > grid.shared_limit) {
        excess = "static and dynamic shared memory together exceed the kernel's limit: use less of either";
    } else if (end + red_zone > static_region) {
        excess = "the kernel has more shared arrays than the simulator supports";
    }
    if (!excess) {
        grid.static_shared_bytes = packed;
        grid.static_extent = end;
        slot.offset = offset;
        unsigned count = grid.static_array_count;
        if (count < sizeof grid.static_arrays / sizeof *grid.static_arrays) {
            grid.static_arrays[count] = {offset, slot.bytes, alignment};
            __atomic_store_n(&grid.static_array_count, count + 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&slot.launch, grid.id, __ATOMIC_RELEASE);
    }
    unlock_mutex(placing);
    if (excess)
        raise_fault(events::FaultKind::shared_memory_exceeded, cudaErrorInvalidValue, nullptr,
                    current_thread->call_address, excess);
    if (grid.checks_enabled) events::shared_array(&slot, offset, slot.bytes, name);
}

// On a GPU, shared memory starts with the contents that the previous block left. Here it holds NaNs, so that a read of
// uninitialized memory shows in the results.
void poison_up_to(BlockStorage& block, size_t extent) {
    if (block.poisoned_bytes >= extent) return;
    memset(block.shared + block.poisoned_bytes, 0xff, extent - block.poisoned_bytes);
    block.poisoned_bytes = extent;
}

}  // namespace

bool map_shared_memory(BlockStorage& block) {
    void* base = mmap(nullptr, region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return false;
    block.shared = static_cast<char*>(base);
    block.dynamic_shared = block.shared + static_region;
    return true;
}

void unmap_shared_memory(BlockStorage& block) { munmap(block.shared, region); }

void poison_shared_memory(BlockStorage& block) {
    const Grid& grid = *static_cast<Grid*>(block.launch);
    block.poisoned_bytes = 0;
    poison_up_to(block, __atomic_load_n(&grid.static_extent, __ATOMIC_RELAXED));
    memset(block.dynamic_shared, 0xff, grid.dynamic_shared_bytes);
}

void* shared_slot_address(SharedSlot* slot, const char* name, size_t alignment) noexcept {
    Thread* self = current_thread;
    if (!self) return nullptr;
    auto& block = *static_cast<BlockStorage*>(self->block);
    if (__builtin_expect(__atomic_load_n(&slot->launch, __ATOMIC_ACQUIRE) != block.launch->id, false)) {
        self->call_address = __builtin_return_address(0);
        place(*slot, name, alignment, *static_cast<Grid*>(block.launch));
    }
    size_t end = slot->offset + slot->bytes;
    // the slot is in the kernel's memory, and the kernel overwrote it
    if (end > static_region) kill_launch(cudaErrorIllegalAddress);
    if (__builtin_expect(end > block.poisoned_bytes, false)) poison_up_to(block, end);
    return block.shared + slot->offset;
}

void* dynamic_shared_address() noexcept { return current_thread ? current_thread->block->dynamic_shared : nullptr; }

size_t dynamic_shared_bytes() noexcept {
    return current_thread ? current_thread->block->launch->dynamic_shared_bytes : 0;
}

size_t declared_alignment(const void* shared) {
    const auto& grid = *static_cast<const Grid*>(current_thread->block->launch);
    const Block* owner = shared_owner(*current_thread->block, shared);
    if (!owner) return dynamic_alignment;
    size_t offset = static_cast<size_t>(static_cast<const char*>(shared) - owner->shared);
    unsigned count = __atomic_load_n(&grid.static_array_count, __ATOMIC_ACQUIRE);
    for (const StaticArray* array = grid.static_arrays; array < grid.static_arrays + count; ++array)
        if (offset - array->offset < array->bytes) return array->alignment;
    return dynamic_alignment;
}

bool is_shared_of(const Block& block, const void* generic) {
    const char* byte = static_cast<const char*>(generic);
    return byte >= block.shared && byte < block.shared + region;
}

bool is_shared(const void* generic) { return current_thread && is_shared_of(*current_thread->block, generic); }

bool is_global(const void* generic) {
    const char* byte = static_cast<const char*>(generic);
    ArenaRange arena = arena_range();
    GlobalVariable variable;
    return (byte >= arena.base && byte < arena.base + arena.bytes) || find_global(generic, &variable);
}

uint32_t shared_window_offset(const void* generic) {
    const Block* owner = current_thread ? shared_owner(*current_thread->block, generic) : nullptr;
    if (!owner) return 0;
    const char* byte = static_cast<const char*>(generic);
    bool is_dynamic = byte >= owner->dynamic_shared;
    auto offset = static_cast<uint32_t>(byte - (is_dynamic ? owner->dynamic_shared : owner->shared));
    return owner->rank << rank_shift | ((is_dynamic ? window_start : static_window(*owner)) + offset);
}

static void* place_in_window(const Block& owner, uint32_t offset) {
    uint32_t fixed = static_window(owner);
    return offset < fixed ? owner.dynamic_shared + (offset - window_start) : owner.shared + (offset - fixed);
}

void* shared_address_of(const Block& block, uint32_t offset) {
    return offset >= window_start ? place_in_window(block, offset) : nullptr;
}

void* own_shared_address(uint32_t offset) {
    return current_thread ? shared_address_of(*current_thread->block, offset) : nullptr;
}

void* shared_window_address(uint32_t address, bool of_cluster) {
    Thread* self = current_thread;
    uint32_t offset = address & ((1u << rank_shift) - 1), rank = address >> rank_shift;
    if (!self) return nullptr;
    const Block& block = *self->block;
    if (rank == block.rank && offset >= window_start) return place_in_window(block, offset);
    self->call_address = __builtin_return_address(0);
    if (offset < window_start) {
        static thread_local char text[160];
        snprintf(text, sizeof text,
                 "offset %u of shared memory: CUDA reserves the first %u bytes, so take the offset of an array from "
                 "__cvta_generic_to_shared(array)",
                 offset, window_start);
        misused(*self, {}, text);
    }
    const Cluster& cluster = *block.cluster;
    if (rank >= cluster.size) misused(*self, {}, "the address is outside of the shared memory of the cluster's blocks");
    if (!of_cluster) {
        misused(*self, {}, "the address is in another block's shared memory: use an instruction with .shared::cluster");
    }
    return place_in_window(*cluster.blocks[rank], offset);
}

}  // namespace sim
