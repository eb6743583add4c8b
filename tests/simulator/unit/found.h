// Access to the findings that the checks have made so far.
#pragma once

#include <string.h>

#include "checks/report/findings.h"

namespace unit {

inline const char* all_found() {
    size_t count = sim::checks::finding_count();
    return count == 0   ? "nothing"
           : count == 1 ? sim::checks::name_of(sim::checks::finding(0).kind)
                        : "several findings";
}

// The fields of a finding's payload: its numbers in order, and its texts separated by " | ".
struct Facts {
    uint64_t numbers[4] = {};
    unsigned count = 0;
    char text[1000] = {};

    void operator()(const char*, uint64_t number) { numbers[count++] = number; }
    void operator()(const char*, int64_t number) { numbers[count++] = static_cast<uint64_t>(number); }
    void operator()(const char*, const char* added) {
        if (*text && *added) strcat(text, " | ");
        strcat(text, added);
    }
    template <typename Value>
    void operator()(const char*, const Value&) {}
};

inline Facts facts(const sim::checks::Finding& finding) {
    Facts facts;
    sim::checks::visit_payload(finding.payload, [&facts](const auto& payload) { payload.each(facts); });
    return facts;
}

inline uint64_t number_in(const sim::checks::Finding& finding, unsigned which = 0) {
    return facts(finding).numbers[which];
}

inline bool says(const sim::checks::Finding& finding, const char* text) { return !strcmp(facts(finding).text, text); }

}  // namespace unit

#define CHECK_FOUND(KIND) CHECK(!strcmp(unit::all_found(), KIND))
