#include "checks/memory/tables.h"

#include "checks/core/access.h"
#include "checks/report/findings.h"

namespace sim::checks {

namespace {

constexpr unsigned piece_shift = 5;
constexpr size_t max_table_bytes = 4096;  // of all tables that a launch reads

}  // namespace

void note_table_read(ThreadState& thread, const AccessSite& site, uintptr_t address) {
    if (!sandbox::confined) return;
    const uintptr_t piece = address >> piece_shift;
    constexpr size_t remembered = sizeof thread.worker->table_pieces / sizeof *thread.worker->table_pieces;
    uintptr_t& last = thread.worker->table_pieces[piece % remembered];
    if (last == piece) return;
    {
        Locked locked(the_launch.lock);
        the_launch.table_pieces.at(piece) = true;
        last = piece;
        if (the_launch.table_pieces.size() << piece_shift <= max_table_bytes) return;
    }
    add_finding(finding_at(FindingKind::constants_too_large, thread, site.address));
}

}  // namespace sim::checks
