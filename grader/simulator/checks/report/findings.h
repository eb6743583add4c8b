// Findings: what was wrong, where, and how often. Identical ones are counted, not repeated.
#pragma once

#include <stdint.h>

#include "checks/core/region.h"
#include "checks/core/epoch.h"

namespace sim::checks {

enum class Check : uint8_t { memcheck, initcheck, racecheck, synccheck, fault };

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
    Check check;
    const char* kind;  // "out_of_bounds", ... : a constant text
    Side side;
    Side other;      // of a race
    uint32_t bytes;  // that were accessed
    uint64_t data;   // the address that was accessed, where it is in no memory
    Place place;
    char detail[400];  // a sentence, or empty
    uint64_t number;   // whatever the kind counts
    uint64_t count;
    uint64_t launch;
    unsigned kernel;  // index; ~0u for none
};

Place place_of(const Region* region, uintptr_t address);

// Adds it, or counts it when there is one of the same kind at the same place. Thread-safe.
void add_finding(const Finding& finding);
// The finding with everything filled in that the running thread says.
struct ThreadState;
Finding finding_at(Check check, const char* kind, const ThreadState& thread, const void* address);

size_t finding_count();
const Finding& finding(size_t i);
void truncate_findings(size_t count);  // drops the youngest
void forget_findings();
void set_finding_limit(size_t limit);
uint64_t dropped_findings();

}  // namespace sim::checks
