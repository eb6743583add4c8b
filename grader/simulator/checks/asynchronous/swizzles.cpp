#include "checks/asynchronous/swizzles.h"

#include <stdlib.h>
#include <string.h>

#include "checks/report/findings.h"

namespace sim::checks {

void note_swizzled_fill(BlockState& owner, uintptr_t address, uint32_t bytes, unsigned line) {
    if (!owner.swizzles && !line) return;
    if (!owner.swizzles) owner.swizzles = zeros<uint8_t>(max_pieces);
    memset(owner.swizzles + ((address - owner.shared->base) >> piece_log2), static_cast<int>(line),
           (bytes + 15) >> piece_log2);
}

void SwizzleCheck::check(const BlockState& owner, uintptr_t address, const ShadowCell& cell, const AccessSite& site) {
    // The swizzle is known only for writes by the copy engine, which are marked as atomic. A read of a pending write is
    // reported by another finding.
    if (reported_ || !owner.swizzles || !cell.write.atomic() || cell.write.pending()) return;
    unsigned filled = owner.swizzles[(address - owner.shared->base) >> piece_log2];
    if (!filled || filled == line_) return;
    reported_ = true;
    Finding finding = finding_at(FindingKind::swizzle_differs, reader_, code_);
    finding.side.access = static_cast<uint8_t>(Access::operand_read);
    finding.place = place_of(site.region, address);
    finding.payload = Swizzles{line_, filled};
    finding.other.address = site_address(cell.write_site);
    finding.other.access = static_cast<uint8_t>(Access::async_write);
    add_finding(finding);
}

void forget_swizzles(BlockState& owner) {
    free(owner.swizzles);
    owner.swizzles = nullptr;
}

}  // namespace sim::checks
