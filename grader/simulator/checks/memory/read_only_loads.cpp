#include "checks/memory/read_only_loads.h"

#include "checks/core/access.h"
#include "checks/report/findings.h"
#include "runtime/block_order.h"

namespace sim::checks {

namespace {

// The first read-only load of an address by one place in the code.
struct Load {
    uintptr_t address;
    const void* code;
    uint32_t serial;
    uint16_t thread;
    uint16_t bytes;
};
constexpr size_t max_loads = size_t(1) << 20;
HashMap<Load> loads;  // by address and code

// Returns the cell's last write if the running launch made it, else `never`.
Epoch written_now(const ShadowCell& cell, uint16_t* site) {
    Epoch stored = last_atomic_store(cell), write = cell.write;
    bool atomic = stored != never && stored.not_earlier_than(write);
    *site = atomic ? cell.read_site : cell.write_site;
    Epoch last = atomic ? stored : write;
    return last.serial() >= the_launch.start_serial ? last : never;
}

void check(const Load& load) {
    uintptr_t address = load.address;
    const Region* region = find_region(address);
    if (!region || !region->cells) return;
    for (unsigned byte = 0; byte < load.bytes && region->contains(address + byte, 1); byte += 1u << region->shift) {
        uint16_t site;
        Epoch write = written_now(region->cells[(address + byte - region->base) >> region->shift], &site);
        if (write == never) continue;
        Finding finding = new_finding(FindingKind::read_only_load);
        finding.side.address = load.code;
        finding.set_access(Access::read, load.bytes, region, address);
        finding.set_other(site, Access::write, write);
        finding.side.has_thread = true;
        finding.side.serial = load.serial;
        finding.side.thread = load.thread;
        finding.launch = the_launch.launch->id;
        finding.kernel = the_launch.kernel;
        return add_finding(finding);
    }
}

}  // namespace

void note_read_only_load(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code) {
    const Region* region = find_region(address);
    if (!region || region->read_only || loads.size() >= max_loads) return;
    in_block_order("its threads use __ldg on memory that it may write");
    Load& load = loads.at(mix(address ^ mix(reinterpret_cast<uintptr_t>(code))) + 1);
    if (!load.code)
        load = {address, code, thread.block->serial, thread.thread->linear, static_cast<uint16_t>(bytes)};
    else if (load.bytes < bytes)
        load.bytes = static_cast<uint16_t>(bytes);
}

void report_read_only_loads() {
    loads.each([](uint64_t, const Load& load) { check(load); });
    forget_read_only_loads();
}

void forget_read_only_loads() { loads.clear(); }

}  // namespace sim::checks
