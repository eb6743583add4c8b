#include "checks/synchronization/streams.h"

#include "checks/counting/counting.h"
#include "checks/core/hooks.h"
#include "checks/synchronization/reader_set.h"
#include "checks/synchronization/races.h"
#include "runtime/host_threads.h"
#include "runtime/streams.h"

namespace sim::checks {

namespace {

Work work;
bool in_work = false;
thread_local bool in_host_function = false;  // per host thread, because other host threads continue meanwhile
uint32_t work_serial = 0;                    // serial of an operation other than a kernel; 0 until it needs one
size_t first_open = 0;                       // index of the first launch that the host does not know to be complete

// A copy in a program with one stream. Marking the cells would cost more than the copy itself, so only the range of
// memory is stored, until the host has waited for the copy. When a second stream is used, the cells of all stored
// ranges are marked.
struct UnmarkedCopy {
    uint32_t serial;
    uint32_t region;
    uintptr_t address;
    size_t bytes;
    bool write;
    uint16_t site;
};
Growable<UnmarkedCopy> unmarked;

bool host_knows(const PastLaunch& past) { return streams::host_clock().covers(past.lane, past.number); }

bool work_knows(const PastLaunch& past) {
    if (work.alone) return true;
    return (past.lane == work.lane && past.number == work.number) || work.known->covers(past.lane, past.number);
}

// Returns the serial of the first launch that may overlap with the launch that begins. Returns `own`, the serial of the
// launch that begins, if there is none.
uint32_t first_unordered(uint32_t own) {
    if (work.alone) return own;
    const Growable<PastLaunch>& past = past_launches();
    for (size_t i = first_open; i < past.size(); ++i)
        if (past[i].first_serial < own && !work_knows(past[i])) return past[i].first_serial;
    return own;
}

// Advances first_open, and drops reader sets whose members are all ordered before everything from now on.
void forget_what_is_over() {
    const Growable<PastLaunch>& past = past_launches();
    if (first_open > past.size()) first_open = 0;
    while (first_open < past.size() && host_knows(past[first_open])) ++first_open;
    if (work.alone || first_open == past.size()) forget_members();
    if (first_open == past.size()) unmarked.clear();
}

// For a programmatic launch, finds the kernel before it in the stream, unless the host has waited for that kernel.
void find_overlap(const Launch& launch) {
    the_launch.overlap_serials = 0;
    if (!launch.programmatic || !in_work) return;
    const Growable<PastLaunch>& past = past_launches();
    for (size_t i = first_open; i < past.size(); ++i) {
        const PastLaunch& before = past[i];
        if (before.call || before.lane != work.lane || before.number + 1 != work.number || host_knows(before)) continue;
        uint32_t end = i + 1 < past.size() ? past[i + 1].first_serial : the_launch.first_serial;
        the_launch.overlap_first = before.first_serial;
        the_launch.overlap_serials = end - before.first_serial;
    }
}

PastLaunch described(unsigned kernel) {
    PastLaunch launch = {};
    static_cast<WorkPlace&>(launch) = work;
    launch.kernel = kernel;
    return launch;
}

// Gives a copy, a fill or a host function a serial at its first access, as if it were a launch of one thread.
void number_work() {
    if (work_serial) return;
    forget_what_is_over();
    PastLaunch launch = described(~0u);
    launch.blocks = 1;
    launch.grid = launch.block = launch.cluster = {1, 1, 1};
    begin_serials(launch);
    work_serial = the_launch.first_serial;
    the_launch.open_serial = first_unordered(work_serial);
    end_serials();
}

// The author of an access that no kernel's thread makes: an operation of a stream, or the host.
struct Accessor {
    bool host;
    bool write;
    Access access;
    const void* code;

    bool knows(uint32_t serial) const {
        if (!host && came_before(serial)) return true;
        uint32_t lane, number;
        {
            host_threads::HistoryLock lock;
            const PastLaunch* past = past_launch(serial);
            if (!past || serial == 0 || (host && host_knows(*past))) return true;
            lane = past->lane;
            number = past->number;
        }
        return host_threads::knows(lane, number);
    }
};

void report(const Accessor& who, const Region& region, uintptr_t address, unsigned bytes, Epoch other,
            uint16_t other_site, Access other_access) {
    Finding finding = new_finding(who.host ? FindingKind::with_host : FindingKind::between_streams);
    finding.set_access(who.access, bytes, &region, address);
    finding.side.address = who.code;
    if (who.host)
        finding.side.call = "the host";
    else
        name_work(finding.side, work_serial);
    finding.set_other(other_site, other_access, other);
    name_work(finding.other, other.serial());
    finding.other.has_thread = !finding.other.call;
    add_finding(finding);
}

void check_cell(const Accessor& who, const Region& region, const ShadowCell& cell) {
    uintptr_t address = region.base + (static_cast<uintptr_t>(&cell - region.cells) << region.shift);
    unsigned bytes = 1u << region.shift;
    Epoch write = cell.write;
    if (!who.knows(write.serial())) report(who, region, address, bytes, write, cell.write_site, Access::write);
    if (!who.write || cell.reads == never) return;
    if (const ReaderSet* members = members_of(cell)) {
        for (uint32_t i = 0; i < members->count; ++i) {
            const Member& member = members->list[i];
            if (who.knows(member.epoch.serial())) continue;
            report(who, region, address, bytes, member.epoch, member.site, access_of(cell, member.kind));
            return;
        }
    } else if (!who.knows(cell.reads.serial())) {
        report(who, region, address, bytes, cell.reads, cell.read_site, access_of(cell, kinds_of(cell)));
    }
}

void mark_cell(ShadowCell& cell, bool write, uint16_t site) {
    Epoch now(work_serial, 1);
    if (write) {
        cell.write = now;
        cell.write_site = site;
        cell.reads = never;
    } else if (cell.reads == never || (!members_of(cell) && came_before(cell.reads.serial()))) {
        cell.reads = now;
        cell.read_site = site;
    } else {
        add_member(cell, now, site);
    }
}

void access(Region& region, uintptr_t address, size_t bytes, const Accessor& who) {
    if (region.read_only && region.space != Space::constant) return;
    number_work();
    track(region);
    uint16_t site = who.code ? site_id(who.code) : uint16_t(0);
    each_cell(&region, address, bytes, [&](ShadowCell& cell) {
        check_cell(who, region, cell);
        mark_cell(cell, who.write, site);
    });
}

// Pageable host memory that copies have written to and that the host has not waited for.
struct CopiedToHost {
    uintptr_t base;
    size_t bytes;
    uint32_t serial;
    uint16_t site;
};
Growable<CopiedToHost> copied_to_host;

// Updates the address range for which the hooks call host_touches_own().
void watch_copied() {
    uintptr_t low = ~uintptr_t(0), high = 0;
    for (const CopiedToHost& copied : copied_to_host) {
        if (copied.base < low) low = copied.base;
        if (copied.base + copied.bytes > high) high = copied.base + copied.bytes;
    }
    host_view.copied_base = copied_to_host.empty() ? 0 : low;
    host_view.copied_bytes = copied_to_host.empty() ? 0 : high - low;
}

void drop_what_the_host_knows() {
    for (size_t i = copied_to_host.size(); i-- > 0;) {
        const PastLaunch* past = past_launch(copied_to_host[i].serial);
        if (!past || host_knows(*past)) copied_to_host.remove_unordered(i);
    }
    watch_copied();
}

void check_copied(const Accessor& who, uintptr_t address, size_t bytes) {
    for (const CopiedToHost& copied : copied_to_host) {
        if (address >= copied.base + copied.bytes || copied.base >= address + bytes) continue;
        if (who.knows(copied.serial)) continue;
        Region region = {};
        region.base = copied.base;
        region.bytes = copied.bytes;
        region.kind = RegionKind::pageable_host;
        uintptr_t first = address > copied.base ? address : copied.base;
        report(who, region, first, static_cast<unsigned>(bytes), Epoch(copied.serial, 1), copied.site, Access::write);
    }
}

void mark_copies() {
    for (const UnmarkedCopy& copy : unmarked) {
        Region* region = find_region(copy.address);
        if (!region || region->id != copy.region || region->read_only) continue;
        track(*region);
        each_cell(region, copy.address, copy.bytes, [&copy](ShadowCell& cell) {
            bool latest = cell.reads.serial() <= copy.serial;
            if (copy.write ? cell.write.serial() <= copy.serial : latest) {
                (copy.write ? cell.write : cell.reads) = Epoch(copy.serial, 1);
                (copy.write ? cell.write_site : cell.read_site) = copy.site;
            }
            if (copy.write && latest) cell.reads = never;
        });
    }
    unmarked.clear();
}

void work_accesses(uintptr_t address, size_t bytes, bool write) {
    Region* region = in_work && work.call ? find_region(address) : nullptr;
    if (!region) return;
    if (work.alone && !host_shares(*region)) {
        number_work();
        unmarked.push({work_serial, region->id, address, bytes, write, site_id(work.address)});
        return;
    }
    Accessor who = {false, write, write ? Access::write : Access::read, work.address};
    if (region->allocated_serial) {
        number_work();
        if (!came_before(region->allocated_serial))
            report(who, *region, address, 0, Epoch(region->allocated_serial, 1), site_id(region->allocated_at),
                   Access::allocation);
    }
    access(*region, address, bytes, who);
}

}  // namespace

const Work* current_work() { return in_work ? &work : nullptr; }

bool looked_up_came_before(uint32_t serial) {
    const PastLaunch* past = past_launch(serial);
    return !past || work_knows(*past);
}

bool begin_ordered_launch(const Launch& launch) {
    forget_what_is_over();
    PastLaunch past = described(the_launch.kernel);
    past.call = nullptr;
    uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
    past.blocks = blocks < Epoch::serial_limit ? static_cast<uint32_t>(blocks) : Epoch::serial_limit;
    past.grid = launch.grid;
    past.block = launch.block;
    past.cluster = launch.cluster;
    bool numbered = begin_serials(past);
    the_launch.open_serial = first_unordered(the_launch.first_serial);
    find_overlap(launch);
    // If other launches may run at the same time, reader sets list every member, because a writer may be ordered after
    // some of the readers and not after others.
    the_launch.exact = the_launch.open_serial != the_launch.first_serial || the_launch.overlap_serials;
    return numbered;
}

void end_ordered_launch() {
    forget_order();
    if (work.alone) forget_members();
    end_serials();
}

void forget_streams() {
    forget_members();
    unmarked.clear();
    copied_to_host.clear();
    watch_copied();
    first_open = 0;
    work_serial = 0;
}

void work_reads(uintptr_t address, size_t bytes) { work_accesses(address, bytes, false); }
void work_writes(uintptr_t address, size_t bytes) { work_accesses(address, bytes, true); }

// Reports bytes that were never written. Needs at least one checked kernel: writes by unchecked kernels are unknown.
void work_copies_out(uintptr_t address, size_t bytes) {
    Region* region = in_work ? find_region(address) : nullptr;
    if (!region || region->initialized || cells_were_refused()) return;
    bool checked = false;
    each_allocation([](Region& each, void* any) { *static_cast<bool*>(any) |= each.cells != nullptr; }, &checked);
    if (!checked) return;
    size_t first = 0, missing = 0;
    if (region->cells) {
        size_t place = 0;
        each_cell(region, address, bytes, [&](const ShadowCell& cell) {
            if (cell.write == never) {
                if (missing == 0) first = place << region->shift;
                missing += size_t(1) << region->shift;
            }
            ++place;
        });
    } else {
        missing = bytes;
    }
    if (missing == 0) return;
    Finding finding = new_finding(FindingKind::uninitialized_copy);
    finding.payload = UninitializedBytes{missing < bytes ? missing : bytes};
    finding.side.address = work.address;
    finding.place = place_of(region, address + first);
    add_finding(finding);
}

void work_writes_host(uintptr_t address, size_t bytes) {
    if (!in_work) return;
    number_work();
    check_copied({false, true, Access::write, work.address}, address, bytes);
    drop_what_the_host_knows();
    copied_to_host.push({address, bytes, work_serial, site_id(work.address)});
    watch_copied();
}

void host_touches_own(uintptr_t address, size_t bytes, bool write, const void* code) {
    if (in_host_function) number_work();
    check_copied({!in_host_function, write, write ? Access::write : Access::read, code}, address, bytes);
    drop_what_the_host_knows();
}

void work_allocates(Region& region) {
    if (!in_work) return;
    number_work();
    region.allocated_serial = work_serial;
}

void work_frees(Region& region, const void* address) {
    if (!in_work || work.alone || region.freed) return;
    number_work();
    Accessor who = {false, true, Access::free, address};
    if (region.allocated_serial && !came_before(region.allocated_serial))
        report(who, region, region.base, 0, Epoch(region.allocated_serial, 1), site_id(region.allocated_at),
               Access::allocation);
    each_cell(&region, region.base, region.bytes, [&](const ShadowCell& cell) { check_cell(who, region, cell); });
}

void host_touches(Region& region, uintptr_t address, size_t bytes, bool write, const void* code) {
    Accessor who = {!in_host_function, write, write ? Access::write : Access::read, code};
    if (in_host_function) return access(region, address, bytes, who);
    each_cell(&region, address, bytes, [&](const ShadowCell& cell) { check_cell(who, region, cell); });
}

void name_work(Side& side, uint32_t serial) {
    const PastLaunch* past = past_launch(serial);
    if (!past) return;
    side.in_stream = true;
    side.stream = past->stream;
    side.call = past->call;
    side.kernel = past->kernel;
}

void check_allocated(const ThreadState& thread, const Region& region, Access access, unsigned bytes, uintptr_t address,
                     const void* code) {
    if (came_before(region.allocated_serial)) return;
    Finding finding = finding_at(FindingKind::between_streams, thread, code);
    finding.set_access(access, bytes, &region, address);
    name_work(finding.side, thread.block->serial);
    finding.other.address = region.allocated_at;
    finding.other.access = static_cast<uint8_t>(Access::allocation);
    name_work(finding.other, region.allocated_serial);
    add_finding(finding);
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

void work_begin(const Work& begun, bool host_function) {
    work = begun;
    in_work = true;
    in_host_function = host_function;
    work_serial = 0;
    if (!work.alone && !unmarked.empty()) mark_copies();
}

void work_end() { in_work = in_host_function = false; }

}  // namespace sim::events
