// memcheck: finds the memory that an address belongs to, or what is wrong with it.
#include <link.h>

#include "checks/core/access.h"
#include "checks/memory/tables.h"
#include "checks/report/findings.h"
#include "checks/synchronization/streams.h"
#include "runtime/block_order.h"
#include "sim/error_codes.h"
#include "sim/shared.h"

namespace sim {
size_t list_globals(GlobalVariable* list, size_t room);  // runtime/globals.cpp: returns their number
}

namespace sim::checks {

void forget_sites(WorkerState& worker, const Region& region) {
    worker.sites.each([&region](AccessSite& site) {
        if (site.region == &region) site.limit = 0;
    });
}

namespace {

// Finds the library segment that holds the address. For a writable segment with a part that the loader made read-only
// (RELRO), finds that part if the address is there.
bool find_segment(uintptr_t address, Segment* found) {
    struct Query {
        uintptr_t address;
        Segment* found;
    } query = {address, found};
    auto visit_library = [](dl_phdr_info* info, size_t, void* context) {
        Query& wanted = *static_cast<Query*>(context);
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr) & header = info->dlpi_phdr[i];
            uintptr_t base = info->dlpi_addr + header.p_vaddr;
            if (wanted.address - base >= header.p_memsz) continue;
            if (header.p_type == PT_GNU_RELRO) {
                *wanted.found = {base, header.p_memsz, false, true};
                return 1;
            }
            if (header.p_type == PT_LOAD) *wanted.found = {base, header.p_memsz, (header.p_flags & PF_W) != 0, false};
        }
        return int(wanted.found->bytes != 0);
    };
    return dl_iterate_phdr(visit_library, &query) != 0;
}

// Returns the __device__ or __constant__ variable that an access to this address most likely missed, or null.
Region* missed_variable(uintptr_t address) {
    constexpr uintptr_t reach = 4096;
    GlobalVariable list[256];
    size_t count = list_globals(list, 256);
    if (count > 256) count = 256;
    const GlobalVariable* best = nullptr;
    uintptr_t best_distance = reach;
    for (size_t i = 0; i < count; ++i) {
        uintptr_t base = reinterpret_cast<uintptr_t>(list[i].base);
        uintptr_t end = base + list[i].bytes;
        uintptr_t distance = address >= end ? address - end : address < base ? base - address + 1 : 0;
        if (distance < best_distance) {
            best = &list[i];
            best_distance = distance;
        }
    }
    return best ? find_region(reinterpret_cast<uintptr_t>(best->base)) : nullptr;
}

void report(ThreadState& thread, const AccessSite& site, FindingKind kind, Access access, unsigned size_log2,
            uintptr_t address, const Region* region) {
    Finding finding = finding_at(kind, thread, site.address);
    finding.set_access(access, size_t(1) << size_log2, region, address);
    finding.payload = Address{address};
    add_finding(finding);
}

// For a write that is partly out of bounds, performs the part inside.
void write_inside(ThreadState& thread, Region& region, uintptr_t address, size_t size) {
    if (region.read_only || region.freed || address >= region.base + region.bytes || address + size <= region.base)
        return;
    track(region);
    if (!region.cells) return;
    uintptr_t first = address > region.base ? address : region.base;
    uintptr_t end = address + size < region.base + region.bytes ? address + size : region.base + region.bytes;
    for (uintptr_t byte = first; byte < end; ++byte)
        region.cells[(byte - region.base) >> region.shift].write = thread.epoch;
}

// Reports an address that is in no region. Returns only if the launch can continue.
void bad_address(ThreadState& thread, const AccessSite& site, uintptr_t address, Access access, unsigned size_log2) {
    if (address < 65536) {
        report(thread, site, FindingKind::null_pointer, access, size_log2, address, nullptr);
        kill_launch(cudaErrorIllegalAddress);
    }
    // An access that crosses the end of a mapping may change memory that is not the submission's.
    bool sticks_out = sandbox::confined && (is_write(access) || access == Access::atomic) &&
                      !sandbox::writable(reinterpret_cast<void*>(address), size_t(1) << size_log2, SIM_FRAME);
    BlockState* owner = owner_of_shared(*thread.block, address);
    if (owner && !sticks_out) {
        Region* region = nearest_shared(*owner, address);
        report(thread, site, FindingKind::out_of_bounds, access, size_log2, address, region);
        if (region && is_write(access)) write_inside(thread, *region, address, size_t(1) << size_log2);
        return;
    }
    ArenaRange arena = arena_range();
    if (!sticks_out && arena.base && address - reinterpret_cast<uintptr_t>(arena.base) < arena.bytes) {
        Region* region = nearest_region(address);
        FindingKind kind = region && region->freed && region->contains(address, 1) ? FindingKind::use_after_free
                                                                                   : FindingKind::out_of_bounds;
        report(thread, site, kind, access, size_log2, address, region);
        if (region && is_write(access)) write_inside(thread, *region, address, size_t(1) << size_log2);
        return;
    }
    if (Region* variable = missed_variable(address)) {
        report(thread, site, FindingKind::out_of_bounds, access, size_log2, address, variable);
        if (!is_write(access)) return;
        kill_launch(cudaErrorIllegalAddress);  // the write would change memory of the simulator
    }
    GlobalVariable variable;
    if (find_host_name(reinterpret_cast<void*>(address), &variable)) {
        Region* region = find_region(reinterpret_cast<uintptr_t>(variable.base));
        address += region->base - reinterpret_cast<uintptr_t>(variable.on_host);
        report(thread, site, FindingKind::host_name, access, size_log2, address, region);
        kill_launch(cudaErrorIllegalAddress);
    }
    report(thread, site, FindingKind::illegal_address, access, size_log2, address, nullptr);
    kill_launch(cudaErrorIllegalAddress);
}

void make_cells(ThreadState& thread, Region& region, unsigned size_log2) {
    bool global = region.space != Space::shared;
    if (size_log2 < region.shift) {  // costs nothing while there are no cells yet
        if (global) in_block_order("its threads access pieces of elements");
        refine(region, size_log2);
        forget_sites(*thread.worker, region);
    }
    if (global && the_launch.concurrent) {
        Locked locked(the_launch.lock);
        track(region);
    } else if (global) {  // shared arrays always have cells
        track(region);
    }
}

Region* region_at(ThreadState& thread, uintptr_t address) {
    BlockState* owner = owner_of_shared(*thread.block, address);
    return owner ? find_shared(*owner, address) : find_region(address);
}

// Points the site at the region of the address. Returns null when the access needs no further checks.
AccessSite* point_at(ThreadState& thread, AccessSite* site, uintptr_t address, Access access, unsigned size_log2) {
    size_t size = size_t(1) << size_log2;
    if (is_local(thread, address)) {
        if (sandbox::confined && (is_write(access) || access == Access::atomic))
            sandbox::check_stack(reinterpret_cast<void*>(address), size, site->address, SIM_FRAME);
        if (may_be_red(address, size)) red_access(thread, address, size, access, site->address);
        if (thread.watches) local_access(thread, address, size, access, site->address);
        return nullptr;
    }
    const Launch& launch = *thread.block->block->launch;
    if (!is_write(access) && address - reinterpret_cast<uintptr_t>(launch.parameters) < launch.parameter_bytes)
        return nullptr;  // a __grid_constant__ parameter
    Region* region = region_at(thread, address);
    if (region && (address & (size - 1))) {  // a GPU checks the alignment before the bounds
        report(thread, *site, FindingKind::misaligned, access, size_log2, address, region);
        kill_launch(cudaErrorMisalignedAddress);
    }
    if (!region || !region->contains(address, size)) {
        if (!region && !is_write(access) && is_table(thread, address)) {
            note_table_read(thread, *site, address);
            return nullptr;
        }
        bad_address(thread, *site, address, access, size_log2);
        return nullptr;
    }
    if (region->read_only && (is_write(access) || access == Access::atomic)) {
        bool constant = region->space == Space::constant;
        report(thread, *site, constant ? FindingKind::write_to_constant : FindingKind::write_to_const, access,
               size_log2, address, region);
    }
    if (region->allocated_serial)
        check_allocated(thread, *region, access, static_cast<unsigned>(size), address, site->address);
    bool own = region->space != Space::shared || is_shared_of(*thread.block->block, reinterpret_cast<void*>(address));
    site = thread.worker->sites.variant(site, own ? region->space : Space::distributed, access, size_log2);
    uintptr_t origin = region->base & ~uintptr_t(31);
    if (region->space == Space::shared) {
        origin =
            thread.block->shared->base;  // also for other blocks' memory, because one request may access several blocks
    } else {
        ArenaRange arena = arena_range();
        if (address - reinterpret_cast<uintptr_t>(arena.base) < arena.bytes)
            origin = reinterpret_cast<uintptr_t>(arena.base);
    }
    if (site->origin != origin) {
        flush_site(*site);
        site->origin = origin;
    }
    // The host may overwrite constant memory in another stream, so its accesses are recorded if another stream is
    // active.
    const Work* work = region->space == Space::constant ? current_work() : nullptr;
    if (!region->read_only || (work && !work->alone)) make_cells(thread, *region, size_log2);
    site->region = region;
    site->block = thread.block;
    site->base = region->base;
    site->limit = region->bytes - size + 1;
    site->cells = region->cells;
    site->shift = region->shift;
    site->window = region->window();
    site->guarded = the_launch.concurrent && region->space != Space::shared;
    return site;
}

}  // namespace

bool is_table(ThreadState& thread, uintptr_t address) {
    WorkerState& worker = *thread.worker;
    if (address - worker.tables.base < worker.tables.bytes) return !in_zone(reinterpret_cast<const void*>(address));
    if (address - worker.virtual_tables.base < worker.virtual_tables.bytes) return true;
    // No library is in the arena or in shared memory. A search for each read out of bounds there would take most of the
    // time of the launch.
    ArenaRange arena = arena_range();
    if (address - reinterpret_cast<uintptr_t>(arena.base) < arena.bytes) return false;
    if (owner_of_shared(*thread.block, address)) return false;
    Segment segment = {};
    if (!find_segment(address, &segment)) return false;
    if (segment.writable || in_zone(reinterpret_cast<const void*>(address))) return false;
    (segment.sealed ? worker.virtual_tables : worker.tables) = segment;
    return true;
}

AccessSite* prepare(ThreadState& thread, AccessSite* site, uintptr_t address, Access access, unsigned size_log2) {
    for (;;) {
        // A site's bounds are valid for one access size and one kind of access.
        if (address - site->base >= site->limit || (address & ((uintptr_t(1) << size_log2) - 1)) ||
            site->access != access || site->size_log2 != size_log2 ||
            (thread.block->cluster_size > 1 && site->block != thread.block)) {
            site = point_at(thread, site, address, access, size_log2);
            if (!site) return nullptr;
        }
        if (site->owner != &thread) bind_log(*site, thread);
        if (site->next != site->end) return site;
        // log_full() runs other threads, which may point the site at other memory. So repeat the tests.
        log_full(*site, thread);
    }
}

AccessSite* prepare_and_log(ThreadState& thread, uintptr_t address, Access access, unsigned size_log2,
                            const void* code) {
    if (thread.pending) before_access(thread, address, size_log2, access, code);
    AccessSite* site = prepare(thread, thread.worker->sites.find(code), address, access, size_log2);
    if (site) *site->next++ = static_cast<uint32_t>((address - site->origin) >> size_log2);
    return site;
}

}  // namespace sim::checks
