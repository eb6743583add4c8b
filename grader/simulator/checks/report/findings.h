// Findings: each has a kind, a place and a count. Identical findings are counted, not repeated.
#pragma once

#include <stdint.h>

#include "checks/core/region.h"
#include "checks/core/epoch.h"
#include "checks/report/finding_kinds.h"

namespace sim::checks {

// The memory that a finding is about, in its state at the time of the finding.
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
    int64_t offset;  // bytes from the start of the memory to the access; negative if it begins before the memory
};

struct Side {
    const void* address;   // code address; null when unknown
    const void* fallback;  // used when `address` has no source line: the last call into the simulator, or the launch
    uint8_t access;        // an Access
    bool has_thread;
    uint32_t serial;   // serial of the block; 0 when unknown
    uint32_t thread;   // number of the thread in its block
    uint32_t line;     // __LINE__ of the call, for barriers and warp intrinsics; 0 when unknown
    bool block_known;  // `block` is set directly, and `serial` is unknown
    uint3 block, index;
    // For findings about the order of streams: the stream and the operation.
    bool in_stream;
    unsigned stream;
    const char* call;  // name of a runtime API function, or "the host"; null for the kernel
    unsigned kernel;
};

enum class Access : uint8_t;

struct Finding {
    FindingKind kind;
    Side side;
    Side other;      // second access of a race
    uint32_t bytes;  // size of the access
    Place place;
    Payload payload;
    uint64_t count;
    uint64_t launch;
    unsigned kernel;  // index of the kernel in the report; ~0u for none

    // Sets the access by the first side, and the place in memory.
    void set_access(Access access, size_t size, const Region* region, uintptr_t address);
    // Sets the second side: an access at a site, by the thread of an epoch.
    void set_other(uint16_t site, Access access, Epoch epoch);
};

Place place_of(const Region* region, uintptr_t address);

// Adds a finding, or counts it if one of the same kind at the same place exists. Thread-safe.
void add_finding(const Finding& finding);
// Returns a finding with count 1, an empty payload, and no kernel or place.
Finding new_finding(FindingKind kind);
// Returns a finding of the running thread, with its block and kernel.
struct ThreadState;
Finding finding_at(FindingKind kind, const ThreadState& thread, const void* address);

size_t finding_count();
const Finding& finding(size_t i);
void truncate_findings(size_t count);  // drops the latest findings
void forget_findings();
void set_finding_limit(size_t limit);
uint64_t dropped_findings();

}  // namespace sim::checks
