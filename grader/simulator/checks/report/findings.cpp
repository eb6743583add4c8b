#include "checks/report/findings.h"

#include <tuple>

#include "checks/synchronization/parallel_blocks.h"

namespace sim::checks {

namespace {

Growable<Finding> findings;
HashMap<uint32_t> by_key;  // hash of the finding's identity -> index + 1
SpinLock lock;
size_t limit = 1000;
uint64_t dropped;

// Hashes the texts of a payload. Findings that differ in a text are different. Findings that differ only in numbers are
// equal, and the first one's numbers are shown.
struct TextHash {
    uint64_t& key;
    void operator()(const char*, const char* text) {
        for (; *text; ++text) key = mix(key + static_cast<unsigned char>(*text));
    }
    template <typename Value>
    void operator()(const char*, const Value&) {}
};

uint64_t key_of(const Finding& f) {
    uint64_t key = mix(static_cast<uint64_t>(f.kind) + 1);
    uint64_t here = mix(reinterpret_cast<uintptr_t>(f.side.address) * 31 + f.side.access);
    uint64_t there = mix(reinterpret_cast<uintptr_t>(f.other.address) * 31 + f.other.access);
    // The hash must not depend on the order of the two sides, because the schedule decides which access runs first.
    key = mix(key + (here ^ there) + (here + there));
    key = mix(key + f.place.id);
    visit_payload(f.payload, [&key](const auto& payload) { payload.each(TextHash{key}); });
    return key ? key : 1;
}

bool earlier(const Finding& a, const Finding& b) {
    return std::tie(a.launch, a.side.serial, a.side.thread) < std::tie(b.launch, b.side.serial, b.side.thread);
}

uint64_t leaked_bytes(const Finding& finding) {
    auto* leak = std::get_if<LeakedBytes>(&finding.payload);
    return leak ? leak->bytes : 0;
}

}  // namespace

// The name, the check and the empty payload of each kind.
struct KindFacts {
    const char* name;
    Check check;
    Payload (*empty)();
};
static constexpr KindFacts kinds[] = {
#define FINDING(NAME, CHECK, PAYLOAD) {#NAME, Check::CHECK, []() -> Payload { return PAYLOAD{}; }},
#include "checks/report/finding_kinds.def"
#undef FINDING
};

const char* name_of(FindingKind kind) { return kinds[static_cast<unsigned>(kind)].name; }
Check check_of(FindingKind kind) { return kinds[static_cast<unsigned>(kind)].check; }
Payload empty_payload(FindingKind kind) { return kinds[static_cast<unsigned>(kind)].empty(); }

Place place_of(const Region* region, uintptr_t address) {
    Place place = {};
    if (!region) return place;
    place.known = true;
    place.kind = region->kind;
    place.id = region->id;
    place.bytes = region->bytes;
    place.element_bytes = region->element_bytes;
    place.ndim = region->ndim;
    memcpy(place.shape, region->shape, sizeof place.shape);
    memcpy(place.name, region->name, strnlen(region->name, sizeof place.name - 1));
    memcpy(place.dtype, region->dtype, strnlen(region->dtype, sizeof place.dtype - 1));
    place.offset = static_cast<int64_t>(address - region->base);
    return place;
}

void Finding::set_access(Access access, size_t size, const Region* region, uintptr_t address) {
    side.access = static_cast<uint8_t>(access);
    bytes = static_cast<uint32_t>(size);
    place = place_of(region, address);
}

void Finding::set_other(uint16_t site, Access access, Epoch epoch) {
    other.address = site_address(site);
    other.access = static_cast<uint8_t>(access);
    other.has_thread = true;
    other.serial = epoch.serial();
    other.thread = epoch.thread();
}

void add_finding(const Finding& made) {
    Finding finding = made;
    // If the kernel is in a library's header, the finding shows the line of the program that calls the library.
    const Launch* launch = the_launch.launch;
    if (!finding.side.fallback && launch && finding.launch == launch->id) finding.side.fallback = launch->caller;
    in_block_order_unlocked("there are findings");
    Locked locked(lock);
    uint32_t& index = by_key.at(key_of(finding));
    if (index) {
        Finding& known = findings[index - 1];
        uint64_t count = known.count + finding.count;
        uint64_t leaked = leaked_bytes(known) + leaked_bytes(finding);
        // Keep the earliest occurrence as the example, so that it does not depend on the number of workers.
        if (earlier(finding, known)) known = finding;
        known.count = count;
        if (auto* leak = std::get_if<LeakedBytes>(&known.payload)) leak->bytes = leaked;
        return;
    }
    if (findings.size() >= limit) {
        ++dropped;
        return;
    }
    findings.push(finding);
    index = static_cast<uint32_t>(findings.size());
}

Finding new_finding(FindingKind kind) {
    Finding finding = {};
    finding.kind = kind;
    finding.payload = empty_payload(kind);
    finding.count = 1;
    finding.kernel = ~0u;
    return finding;
}

Finding finding_at(FindingKind kind, const ThreadState& thread, const void* address) {
    Finding finding = new_finding(kind);
    finding.side.address = address;
    finding.side.has_thread = true;
    finding.side.serial = thread.block->serial;
    finding.side.thread = thread.thread->linear;
    finding.launch = the_launch.launch ? the_launch.launch->id : 0;
    finding.kernel = the_launch.launch ? the_launch.kernel : ~0u;
    return finding;
}

size_t finding_count() { return findings.size(); }
const Finding& finding(size_t i) { return findings[i]; }

void truncate_findings(size_t count) {
    findings.truncate(count);
    by_key.clear();
    for (size_t i = 0; i < count; ++i) by_key.at(key_of(findings[i])) = static_cast<uint32_t>(i + 1);
}

void forget_findings() {
    findings.clear();
    by_key.clear();
    dropped = 0;
}

void set_finding_limit(size_t new_limit) { limit = new_limit; }
uint64_t dropped_findings() { return dropped; }

}  // namespace sim::checks
