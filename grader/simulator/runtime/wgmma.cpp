// wgmma: a wgmma begins when the four warps of a warpgroup have arrived, and is complete when a warp has waited for it.
#include "submission_sandbox/sandbox.h"
#include "sim/wgmma.h"

#include <stdarg.h>
#include <stdlib.h>

#include "misuse.h"
#include "wgmma_operations.h"
#include "scheduler.h"
#include "sim/architectures.h"
#include "sim/error_codes.h"
#include "sim/small_float.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

// The value of accumulator registers while a wgmma is pending. It is a signaling NaN, as a float and in each half as a
// 16-bit number. Any arithmetic changes such a value, so a use of the registers is detected.
constexpr uint32_t taken = 0x7fa07da5;

// The argument `detail` of warpgroup_exchange for wgmma instructions. They differ from those of setmaxnreg and
// mma.sync, so that warps which execute different instructions together are detected.
constexpr unsigned wgmma_detail = 1, step_detail = 2;

struct Operands {
    Wgmma kind;
    uint64_t a01, a23, b;
    bool adds;
    Site site;
    uint32_t* variables[max_registers];
};

bool same(const Wgmma& x, const Wgmma& y) { return x.n == y.n && x.d == y.d; }

// Returns an object from the list `unused`, or a new one.
template <typename T>
T* take(T*& unused, const void* address) {
    T* one = unused;
    if (one)
        unused = one->next;
    else
        one = static_cast<T*>(malloc(sizeof(T)));
    if (!one) out_of_memory(address, too_many_mmas);
    return one;
}

template <typename T>
void free_list(T*& list) {
    while (T* first = list) {
        list = first->next;
        free(first);
    }
}

PendingWgmma& wgmma_of(Warp& warp, const void* address) {
    if (warp.wgmma) return *warp.wgmma;
    warp.wgmma = static_cast<PendingWgmma*>(calloc(1, sizeof(PendingWgmma)));
    if (!warp.wgmma) out_of_memory(address, too_many_mmas);
    warp.wgmma->end = &warp.wgmma->oldest;
    return *warp.wgmma;
}

DecodedB& decoded_of(Warp& warp, const void* address) {
    PendingWgmma& first = wgmma_of(warp.block->warps[warp.index / warps_per_group * warps_per_group], address);
    if (!first.decoded) first.decoded = make_decoded();
    if (!first.decoded) out_of_memory(address, too_many_mmas);
    return *first.decoded;
}

// Calls visit(variables, values) for each lane's elements of a tile. A lane holds rows lane / 4 and lane / 4 + 8, and
// of each 8 columns the columns 2 * (lane % 4) and the next one. An f16 accumulator is half a register.
template <typename F>
void each_lane(Tile& tile, F visit) {
    uint32_t* values[2 * max_registers];
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        unsigned count = 0;
        for (unsigned column = lane % 4 * 2; column < tile.kind.n; column += 8) {
            for (unsigned half = 0; half < 2; ++half) {
                values[count++] = &tile.value[lane / 4 + 8 * half][column];
                values[count++] = &tile.value[lane / 4 + 8 * half][column + 1];
            }
        }
        visit(lane, values, count);
    }
}

// Reads the accumulators, and marks them as pending.
void read_accumulators(Tile& tile) {
    bool halves = tile.kind.d == Element::f16;
    each_lane(tile, [&](unsigned lane, uint32_t* const* values, unsigned count) {
        uint32_t* const* variables = tile.variables[lane];
        for (unsigned i = 0; i < count; ++i) {
            uint32_t bits = *variables[halves ? i / 2 : i];
            *values[i] = halves ? bit_cast<uint32_t>(F16::decode(static_cast<uint16_t>(bits >> (16 * (i % 2))))) : bits;
        }
        for (unsigned i = 0; i < tile.kind.registers(); ++i) *variables[i] = taken;
    });
}

// Returns whether a variable still exists: if it is on the thread's stack, its function has not returned.
bool is_alive(const Thread& thread, const void* variable) {
    auto* byte = static_cast<const char*>(variable);
    if (byte < thread.fiber->low || byte >= thread.fiber->top) return true;
    auto* end = static_cast<const char*>(&thread == current_thread ? __builtin_frame_address(0) : thread.stack_pointer);
    // If `end` is not on the thread's stack, its frames are unknown: assume that the variable exists.
    return byte >= end || end >= thread.fiber->top;
}

// Writes the results to the accumulators that still exist and were not changed.
void write_accumulators(Tile& tile, Warp& warp) {
    bool halves = tile.kind.d == Element::f16;
    each_lane(tile, [&](unsigned lane, uint32_t* const* values, unsigned count) {
        uint32_t* const* variables = tile.variables[lane];
        Thread& thread = warp.threads[lane];
        for (unsigned i = 0; i < tile.kind.registers(); ++i) {
            if (is_alive(thread, variables[i]) && *variables[i] == taken) continue;
            misused(thread, thread.wait_site,
                    "accumulators of a wgmma were written, or their lifetime ended, before wgmma.wait_group");
        }
        for (unsigned i = 0; i < count; ++i) {
            if (!halves)
                *variables[i] = *values[i];
            else if (i % 2 == 0)
                *variables[i / 2] = static_cast<uint32_t>(F16::encode(bit_cast<float>(*values[i + 1]))) << 16 |
                                    F16::encode(bit_cast<float>(*values[i]));
        }
        if (warp.block->checked) events::accumulators_ready(thread, variables, tile.kind.registers());
    });
}

// Returns the tile with the accumulators of all lanes: a pending one, which this wgmma continues, or a new one.
Tile* tile_of(PendingWgmma& pending, Warp& warp, Operands* const* lanes) {
    const Wgmma& kind = lanes[0]->kind;
    size_t bytes = kind.registers() * sizeof(uint32_t*);
    for (Tile* tile = pending.tiles; tile; tile = tile->next) {
        bool equal = same(tile->kind, kind);
        for (unsigned lane = 0; lane < lanes_per_warp && equal; ++lane)
            equal = memcmp(tile->variables[lane], lanes[lane]->variables, bytes) == 0;
        if (equal) return tile;
        for (unsigned i = 0; i < kind.registers(); ++i) {
            for (unsigned j = 0; j < tile->kind.registers(); ++j) {
                if (lanes[0]->variables[i] != tile->variables[0][j]) continue;
                misused(warp.threads[0], lanes[0]->site,
                        "wgmma shares accumulators with a pending wgmma of another shape or with other accumulators: "
                        "execute wgmma.wait_group between them");
            }
        }
    }
    Tile* tile = take(pending.free_tiles, warp.threads[0].call_address);
    tile->kind = kind;
    tile->operations = 0;
    for (unsigned lane = 0; lane < lanes_per_warp; ++lane) {
        memcpy(tile->variables[lane], lanes[lane]->variables, bytes);
        if (warp.block->checked)
            events::accumulators_pending(warp.threads[lane], tile->variables[lane], kind.registers());
    }
    tile->next = pending.tiles;
    pending.tiles = tile;
    read_accumulators(*tile);
    return tile;
}

void begin(Warp& warp, Operands* const* lanes) {
    const void* address = warp.threads[0].call_address;
    PendingWgmma& pending = wgmma_of(warp, address);
    Tile* tile = tile_of(pending, warp, lanes);
    WgmmaOperation* operation = take(pending.free_operations, address);
    const Operands& first = *lanes[0];
    operation->kind = first.kind;
    operation->a = first.a01;
    operation->b = first.b;
    for (unsigned lane = 0; lane < lanes_per_warp && first.kind.a_in_registers; ++lane) {
        const uint64_t words[] = {lanes[lane]->a01, lanes[lane]->a23};
        memcpy(operation->a_registers[lane], words, sizeof words);
    }
    operation->adds = first.adds;
    operation->tile = tile;
    ++tile->operations;
    operation->group = pending.group;
    operation->number = ++pending.number;
    operation->address = address;
    operation->next = nullptr;
    *pending.end = operation;
    pending.end = &operation->next;
}

// All warps of the warpgroup have arrived.
void issue_all(Warp* warps, void* const* arguments) {
    auto* lanes = reinterpret_cast<Operands* const*>(arguments);
    const Operands* first = nullptr;
    bool missing = false;
    for (unsigned i = 0; i < warps_per_group * lanes_per_warp; ++i) {
        if (!lanes[i])
            missing = true;
        else if (!first)
            first = lanes[i];
    }
    Thread& example = *current_thread;
    if (missing)
        misused(example, first->site, "wgmma.mma_async requires all 128 threads of a warpgroup: some have exited");
    for (unsigned i = 1; i < warps_per_group * lanes_per_warp; ++i) {
        bool descriptors = lanes[i]->b == first->b && (first->kind.a_in_registers || lanes[i]->a01 == first->a01);
        if (descriptors && lanes[i]->adds == first->adds) continue;
        misused(warps[i / lanes_per_warp].threads[i % lanes_per_warp], first->site,
                descriptors ? "the threads of a warpgroup pass different values of scale-d to wgmma.mma_async"
                            : "the threads of a warpgroup pass different matrix descriptors to wgmma.mma_async");
    }
    for (unsigned w = 0; w < warps_per_group; ++w) begin(warps[w], lanes + w * lanes_per_warp);
    if (warps->block->checked) {
        uint64_t number = warps->wgmma->number;
        events::wgmma_issued(warps, {first->kind, first->a01, first->b, number, warps->threads[0].call_address});
    }
}

void wait(Warp& warp, unsigned may_pend) {
    PendingWgmma& pending = wgmma_of(warp, warp.threads[0].call_address);
    uint64_t done = 0;
    while (WgmmaOperation* operation = pending.oldest) {
        if (operation->group + may_pend >= pending.group) break;
        perform(*operation, warp.index % warps_per_group, decoded_of(warp, operation->address));
        done = operation->number;
        --operation->tile->operations;
        pending.oldest = operation->next;
        if (!pending.oldest) pending.end = &pending.oldest;
        operation->next = pending.free_operations;
        pending.free_operations = operation;
    }
    if (done && warp.block->checked) events::wgmma_done(warp, done);
    for (Tile** link = &pending.tiles; Tile* tile = *link;) {
        if (tile->operations) {
            link = &tile->next;
            continue;
        }
        *link = tile->next;
        tile->next = pending.free_tiles;
        pending.free_tiles = tile;
        write_accumulators(*tile, warp);
    }
}

struct Step {
    enum { fence, commit, wait } kind;
    unsigned groups;
};

void make_step(void* const* arguments, unsigned participants) {
    Warp& warp = *current_thread->warp;
    const Step& step = *static_cast<const Step*>(arguments[__builtin_ctz(participants)]);
    if (participants != ~0u) {
        misused(*current_thread, current_thread->wait_site,
                "wgmma.fence, commit_group and wait_group require all 32 threads of a warp: some have exited");
    }
    switch (step.kind) {
        case Step::fence:
            if (warp.block->checked) events::wgmma_fenced(warp);
            break;
        case Step::commit:
            ++wgmma_of(warp, warp.threads[0].call_address).group;
            break;
        case Step::wait:
            wait(warp, step.groups);
            break;
    }
}

}  // namespace

void wgmma(Site site, Wgmma kind, uint64_t a01, uint64_t a23, uint64_t b, int adds, ...) {
    Thread* self = current_thread;
    if (!self) return;
    self->call_address = CALLER;
    if (compute_capability() != 90)
        misused(*self, site, "wgmma requires sm_90a, but the simulated device has another architecture");
    constexpr unsigned threads = warps_per_group * lanes_per_warp;
    if ((self->linear / threads + 1) * threads > self->block->thread_count)
        misused(*self, site, "wgmma.mma_async requires a whole warpgroup: use a multiple of 128 threads per block");
    Operands operands;
    operands.kind = kind;
    operands.a01 = a01;
    operands.a23 = a23;
    operands.b = b;
    operands.adds = adds != 0;
    operands.site = site;
    va_list variables;
    va_start(variables, adds);
    for (unsigned i = 0; i < kind.registers(); ++i)
        operands.variables[i] = sandbox::result(va_arg(variables, uint32_t*));
    va_end(variables);
    warpgroup_exchange(site, "wgmma.mma_async", &operands, issue_all, self->call_address, wgmma_detail);
}

namespace {
void step(Site site, const char* name, Step what, const void* caller) {
    warp_exchange_from(site, name, ~0u, &what, make_step, caller, step_detail);
}
}  // namespace

void wgmma_fence(Site site) { step(site, "wgmma.fence", {Step::fence, 0}, CALLER); }
void wgmma_commit(Site site) { step(site, "wgmma.commit_group", {Step::commit, 0}, CALLER); }
void wgmma_wait(Site site, unsigned groups) { step(site, "wgmma.wait_group", {Step::wait, groups}, CALLER); }

void finish_wgmma(Block& block) {
    for (unsigned w = 0; w < block.warp_count; ++w) {
        PendingWgmma* pending = block.warps[w].wgmma;
        if (!pending) continue;
        if (block.live == 0 && block.checked && pending->oldest)
            events::wgmma_at_exit(block.warps[w], pending->oldest->address);
        free_list(pending->oldest);
        free_list(pending->free_operations);
        free_list(pending->tiles);
        free_list(pending->free_tiles);
        free(pending->decoded);
        free(pending);
        block.warps[w].wgmma = nullptr;
    }
}

}  // namespace sim
