// Findings: what was wrong, where, and how often. Identical ones are counted, not repeated.
#pragma once

#include <stdint.h>

#include "checks/core/region.h"
#include "checks/core/epoch.h"
#include "checks/report/finding_kinds.h"

namespace sim::checks {

// A memory in which something happened, as it was then.
struct Place {
    bool known;
    RegionKind kind;
    uint32_t id;
    uint64_t bytes;
    unsigned element_bytes;
    int ndim;
    int64_t shape[8];
    char name[64];
    char dtype[16];
    int64_t offset;  // of the access from the start; negative before it
};

struct Side {
    const void* address;   // of the code; null when unknown
    const void* fallback;  // when the address may belong to no line: the last call into the simulator, or the launch
    uint8_t access;        // an Access
    bool has_thread;
    uint32_t serial;   // of the block; 0 when unknown
    uint32_t thread;   // in it, x fastest
    uint32_t line;     // as the source says itself, for barriers and warp intrinsics; 0 when unknown
    bool block_known;  // without a serial, from the runtime itself
    uint32_t block[3];
    uint32_t index[3];
    // Which operation of which stream it belongs to, where the order of those is what matters.
    bool in_stream;
    unsigned stream;
    const char* call;  // a function of the runtime API, "the host"; null for the kernel
    unsigned kernel;
};

struct Finding {
    FindingKind kind;
    Side side;
    Side other;      // of a race
    uint32_t bytes;  // that were accessed
    Place place;
    Payload payload;
    uint64_t count;
    uint64_t launch;
    unsigned kernel;  // index; ~0u for none
};

Place place_of(const Region* region, uintptr_t address);

// Adds it, or counts it when there is one of the same kind at the same place. Thread-safe.
void add_finding(const Finding& finding);
// A finding that was seen once, of no kernel and no place yet, with an empty payload.
Finding new_finding(FindingKind kind);
// A finding of the running thread, with its block and kernel.
struct ThreadState;
Finding finding_at(FindingKind kind, const ThreadState& thread, const void* address);

size_t finding_count();
const Finding& finding(size_t i);
void truncate_findings(size_t count);  // drops the youngest
void forget_findings();
void set_finding_limit(size_t limit);
uint64_t dropped_findings();

}  // namespace sim::checks
