// What the checks have found so far, in a word.
#pragma once

#include <string.h>

#include "checks/report/findings.h"

namespace unit {

inline const char* all_found() {
    size_t count = sim::checks::finding_count();
    return count == 0 ? "nothing" : count == 1 ? sim::checks::finding(0).kind : "several findings";
}

}  // namespace unit

#define CHECK_FOUND(KIND) CHECK(!strcmp(unit::all_found(), KIND))
