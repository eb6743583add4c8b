// Tensor memory: allocation, tcgen05.ld and tcgen05.st.
#include "submission_sandbox/sandbox.h"
#include "tensor_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "misuse.h"
#include "scheduler.h"
#include "sim/architectures.h"
#include "sim/error_codes.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

// The value of destination registers between a load and its wait: a signaling NaN, so that a use shows in the results.
constexpr uint32_t not_loaded = 0x7fa07da5;

// The argument `detail` of warp_exchange_from for tcgen05 instructions. They differ, so that lanes of a warp which
// execute different instructions together are detected.
constexpr unsigned allocation_detail = 3, access_detail = 4, wait_detail = 5;

constexpr const char* no_memory = "the simulator is out of memory for tensor memory";

bool is_power_of_two(uint32_t n) { return n && !(n & (n - 1)); }

void check_warp(Thread& self, unsigned participants, const char* text) {
    if (participants != ~0u) misused(self, self.wait_site, text);
}

// --- allocation ---

struct Allocation {
    enum { allocate, release, give_up } kind;
    bool pair;
    char* address_goes_to;
    uint32_t address, columns;
    Site site;
};

// Returns the first free range of `columns` columns; tensor_columns if there is none.
unsigned find_place(const TensorMemory& memory, unsigned columns) {
    for (unsigned first = 0; first + columns <= tensor_columns; first += 32) {
        unsigned free = 0;
        while (free < columns && !memory.allocation[first + free]) ++free;
        if (free == columns) return first;
    }
    return tensor_columns;
}

void allocate(Thread& self, TensorMemory& memory, const Allocation& asked) {
    if (asked.columns < 32 || asked.columns > tensor_columns || !is_power_of_two(asked.columns))
        misused(self, asked.site, "invalid tcgen05.alloc: the number of columns must be 32, 64, 128, 256 or 512");
    if (memory.relinquished)
        misused(self, asked.site, "tcgen05.alloc after the block has executed tcgen05.relinquish_alloc_permit");
    Block* owner = shared_owner(*self.block, asked.address_goes_to);
    if (owner != self.block || reinterpret_cast<uintptr_t>(asked.address_goes_to) % 4)
        misused(self, asked.site,
                "invalid destination of tcgen05.alloc: it must be 4 aligned bytes in the block's shared memory");
    unsigned first = find_place(memory, asked.columns);
    if (first == tensor_columns)
        misused(self, asked.site,
                "tcgen05.alloc would wait forever: the block itself holds the columns, free them with tcgen05.dealloc "
                "first");
    ++memory.allocations;
    for (unsigned c = 0; c < asked.columns; ++c)
        memory.allocation[first + c] = static_cast<uint16_t>(memory.allocations);
    memory.allocated_at = self.call_address;
    memory.allocated_by = &self;
    for (auto& lane : memory.value) memset(lane + first, 0xff, asked.columns * sizeof *lane);
    if (self.block->checked) events::tensor_allocated(self, asked.address_goes_to, first, asked.columns);
    memcpy(asked.address_goes_to, &first, sizeof first);
}

void release(Thread& self, TensorMemory& memory, const Allocation& asked) {
    unsigned first = asked.address & 0xffff, number = first < tensor_columns ? memory.allocation[first] : 0;
    unsigned begin = first, end = first;
    while (number && begin > 0 && memory.allocation[begin - 1] == number) --begin;
    while (number && end < tensor_columns && memory.allocation[end] == number) ++end;
    if (!number || asked.address >> 16 || begin != first || end - begin != asked.columns)
        misused(self, asked.site,
                "invalid tcgen05.dealloc: pass an address from tcgen05.alloc that was not deallocated yet, with the "
                "same number of columns");
    if (self.block->checked) events::tensor_released(self, first, asked.columns);
    for (unsigned c = begin; c < end; ++c) memory.allocation[c] = 0;
}

void allocate_or_release(void* const* arguments, unsigned participants) {
    check_warp(*current_thread, participants,
               "tcgen05.alloc, dealloc and relinquish_alloc_permit require all 32 threads of a warp");
    Thread& self = current_thread->warp->threads[0];
    auto* asked = static_cast<const Allocation*>(arguments[0]);
    for (unsigned lane = 1; lane < lanes_per_warp; ++lane) {
        auto* other = static_cast<const Allocation*>(arguments[lane]);
        if (other->address == asked->address && other->columns == asked->columns &&
            other->address_goes_to == asked->address_goes_to)
            continue;
        misused(*current_thread, asked->site,
                "the lanes of a warp pass different operands to tcgen05.alloc or dealloc");
    }
    check_group(self, asked->site, asked->pair);
    TensorMemory& memory = tensor_memory_of(*self.block, self.call_address);
    switch (asked->kind) {
        case Allocation::allocate:
            return allocate(self, memory, *asked);
        case Allocation::release:
            return release(self, memory, *asked);
        case Allocation::give_up:
            memory.relinquished = true;
    }
}

void manage(const Allocation& asked, const char* name, const void* caller) {
    Thread* self = current_thread;
    if (!self) return;
    if (compute_capability() != 100)
        misused(*self, asked.site, "tensor memory requires sm_100a, but the simulated device has another architecture");
    Allocation own = asked;
    warp_exchange_from(asked.site, name, ~0u, &own, allocate_or_release, caller, allocation_detail);
}

// --- loads and stores ---

struct Transfer {
    TensorShape shape;
    unsigned repetitions;
    uint32_t address;
    bool stores;
    Site site;
    uint32_t* variables[128];  // destinations of a load
    uint32_t values[128];      // values of a store

    unsigned registers() const { return registers_of(shape, repetitions); }
    unsigned columns() const {
        switch (shape) {
            case TensorShape::lanes32_bits32:
                return repetitions;
            case TensorShape::lanes16_bits64:
                return 2 * repetitions;
            case TensorShape::lanes16_bits128:
                return 4 * repetitions;
            case TensorShape::lanes16_bits256:
                return 8 * repetitions;
        }
        return 0;
    }
    unsigned lanes() const { return shape == TensorShape::lanes32_bits32 ? 32 : 16; }
    // The lane and column, relative to the address, of a thread's register (PTX ISA, "Data Movement Shape").
    struct Place {
        unsigned lane, column;
    };
    Place place(unsigned lane, unsigned r) const {
        switch (shape) {
            case TensorShape::lanes32_bits32:
                return {lane, r};
            case TensorShape::lanes16_bits64:
                return {lane / 4 + 8 * (lane % 2), lane / 2 % 2 + 2 * r};
            case TensorShape::lanes16_bits128:
                return {lane / 4 + 8 * (r % 2), lane % 4 + 4 * (r / 2)};
            case TensorShape::lanes16_bits256:
                return {lane / 4 + 8 * (r / 2 % 2), r % 2 + 2 * (lane % 4) + 8 * (r / 4)};
        }
        return {0, 0};
    }
};

void check_lanes(Thread& self, const Transfer& asked) {
    unsigned lane = asked.address >> 16, quarter = self.warp->index % 4 * 32;
    bool begins = lane == quarter || (asked.lanes() == 16 && lane == quarter + 16);
    if (begins) return;
    static thread_local char text[200];
    snprintf(
        text, sizeof text,
        "warp %u can access lanes %u to %u of tensor memory (by its number modulo 4), but the address is of lane %u",
        self.warp->index, quarter, quarter + 31, lane);
    misused(self, asked.site, text);
}

void transfer_all(void* const* arguments, unsigned participants) {
    check_warp(*current_thread, participants, "tcgen05.ld and st require all 32 threads of a warp: some have exited");
    Warp& warp = *current_thread->warp;
    Thread& self = warp.threads[0];
    auto* const* lanes = reinterpret_cast<Transfer* const*>(arguments);
    const Transfer& first = *lanes[0];
    for (unsigned lane = 1; lane < lanes_per_warp; ++lane)
        if (lanes[lane]->address != first.address)
            misused(warp.threads[lane], first.site, "the lanes of a warp pass different addresses to tcgen05.ld or st");
    check_lanes(self, first);
    unsigned column = first.address & 0xffff, row = first.address >> 16;
    check_columns(self, first.site, *warp.block, column, first.columns(), first.stores ? "tcgen05.st" : "tcgen05.ld");
    TensorMemory& memory = tensor_memory_of(*warp.block, self.call_address);
    if (warp.block->checked)
        events::tensor_transfer(warp, {row, first.lanes(), column, first.columns()}, first.stores, self.call_address);
    TensorLoad* load = nullptr;
    if (!first.stores) {
        load = static_cast<TensorLoad*>(malloc(sizeof(TensorLoad)));
        if (!load) out_of_memory(self.call_address, no_memory);
        load->registers = first.registers();
        load->address = self.call_address;
        load->next = memory.loads[warp.index];
        memory.loads[warp.index] = load;
    }
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        for (unsigned r = 0; r < first.registers(); ++r) {
            Transfer::Place place = first.place(lane, r);
            uint32_t& cell = memory.value[row + place.lane][column + place.column];
            if (first.stores) {
                cell = lanes[lane]->values[r];
            } else {
                load->variables[lane][r] = lanes[lane]->variables[r];
                load->values[lane][r] = cell;
                *lanes[lane]->variables[r] = not_loaded;
            }
        }
        if (load && warp.block->checked)
            events::tensor_registers_pending(warp.threads[lane], load->variables[lane], load->registers);
    }
}

void wait_for_loads(void* const* arguments, unsigned participants) {
    check_warp(*current_thread, participants, "tcgen05.wait requires all 32 threads of a warp: some have exited");
    Warp& warp = *current_thread->warp;
    bool stores = *static_cast<const bool*>(arguments[0]);
    if (warp.block->checked) events::tensor_waited(warp, stores);
    if (stores || !warp.block->tensor_memory) return;
    TensorLoad*& newest = warp.block->tensor_memory->loads[warp.index];
    // Perform the oldest load first, so that a register that was loaded twice gets the later value.
    TensorLoad* oldest = nullptr;
    while (TensorLoad* load = newest) {
        newest = load->next;
        load->next = oldest;
        oldest = load;
    }
    while (TensorLoad* load = oldest) {
        oldest = load->next;
        for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
            for (unsigned r = 0; r < load->registers; ++r) *load->variables[lane][r] = load->values[lane][r];
            if (warp.block->checked)
                events::tensor_registers_ready(warp.threads[lane], load->variables[lane], load->registers);
        }
        free(load);
    }
}

void transfer(Transfer& own, const char* name, const void* caller) {
    warp_exchange_from(own.site, name, ~0u, &own, transfer_all, caller, access_detail);
}

void wait(Site site, const char* name, bool stores, const void* caller) {
    if (current_thread) warp_exchange_from(site, name, ~0u, &stores, wait_for_loads, caller, wait_detail + stores);
}

}  // namespace

TensorMemory& tensor_memory_of(Block& block, const void* address) {
    if (!block.tensor_memory) block.tensor_memory = static_cast<TensorMemory*>(calloc(1, sizeof(TensorMemory)));
    if (!block.tensor_memory) out_of_memory(address, no_memory);
    return *block.tensor_memory;
}

Block& neighbor_of(const Block& block) { return *block.cluster->blocks[block.rank ^ 1]; }

void check_group(Thread& self, Site site, bool pair) {
    if (pair && self.block->cluster->size % 2)
        misused(self, site, "cta_group::2 requires CTA pairs: launch clusters with an even number of blocks");
    unsigned& group = tensor_memory_of(*self.block, self.call_address).group;
    unsigned asked = pair ? 2 : 1;
    if (group && group != asked)
        misused(self, site, "different cta_groups in one kernel: all its tcgen05 instructions must use the same");
    group = asked;
}

void check_columns(Thread& self, Site site, Block& block, unsigned first, unsigned count, const char* what) {
    const TensorMemory& memory = tensor_memory_of(block, self.call_address);
    unsigned c = first;
    while (c < first + count && c < tensor_columns && memory.allocation[c]) ++c;
    if (c == first + count) return;
    static thread_local char text[200];
    if (c >= tensor_columns)
        snprintf(text, sizeof text, "%s uses columns %u to %u of tensor memory, which has 512", what, first,
                 first + count - 1);
    else
        snprintf(text, sizeof text, "%s uses column %u of tensor memory%s, which is not allocated", what, c,
                 &block == self.block ? "" : " of the other block of the pair");
    misused(self, site, text);
}

void tensor_allocate(Site site, bool pair, void* to, uint32_t columns) {
    manage({Allocation::allocate, pair, static_cast<char*>(to), 0, columns, site}, "tcgen05.alloc", CALLER);
}
void tensor_release(Site site, bool pair, uint32_t address, uint32_t columns) {
    manage({Allocation::release, pair, nullptr, address, columns, site}, "tcgen05.dealloc", CALLER);
}
void tensor_relinquish_alloc_permit(Site site, bool pair) {
    manage({Allocation::give_up, pair, nullptr, 0, 0, site}, "tcgen05.relinquish_alloc_permit", CALLER);
}

void tensor_load(Site site, TensorShape shape, unsigned repetitions, uint32_t address, ...) {
    if (!current_thread) return;
    Transfer own;
    own.shape = shape, own.repetitions = repetitions, own.address = address, own.stores = false, own.site = site;
    va_list variables;
    va_start(variables, address);
    for (unsigned i = 0; i < own.registers(); ++i)
        own.variables[i] = ::sim::sandbox::result(va_arg(variables, uint32_t*));
    va_end(variables);
    transfer(own, "tcgen05.ld", CALLER);
}

void tensor_store(Site site, TensorShape shape, unsigned repetitions, uint32_t address, ...) {
    if (!current_thread) return;
    Transfer own;
    own.shape = shape, own.repetitions = repetitions, own.address = address, own.stores = true, own.site = site;
    va_list values;
    va_start(values, address);
    for (unsigned i = 0; i < own.registers(); ++i) own.values[i] = va_arg(values, uint32_t);
    va_end(values);
    transfer(own, "tcgen05.st", CALLER);
}

void tensor_wait_loaded(Site site) { wait(site, "tcgen05.wait::ld", false, CALLER); }
void tensor_wait_stored(Site site) { wait(site, "tcgen05.wait::st", true, CALLER); }

void tensor_fence_before() {
    if (current_thread && current_thread->block->checked) events::tensor_fence(*current_thread, false);
}
void tensor_fence_after() {
    if (current_thread && current_thread->block->checked) events::tensor_fence(*current_thread, true);
}

void finish_tensor_memory(Block& block) {
    TensorMemory* memory = block.tensor_memory;
    if (!memory) return;
    while (TensorOperation* operation = memory->oldest) {
        memory->oldest = operation->next;
        free(operation);
    }
    for (TensorLoad* load : memory->loads) {
        while (TensorLoad* first = load) {
            load = first->next;
            free(first);
        }
    }
    free(memory->operands);
    free(memory);
    block.tensor_memory = nullptr;
}

}  // namespace sim
