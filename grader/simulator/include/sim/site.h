// Where in the source a barrier or a warp intrinsic stands.
//
// Threads that meet must meet at the same place. A return address cannot tell: unrolling gives one barrier several
// addresses and tail merging gives several barriers one. The line with a counter (two on one line) survives both.
#pragma once

namespace sim {

struct Site {
    unsigned line;
    unsigned counter;
    constexpr bool operator==(const Site& other) const { return line == other.line && counter == other.counter; }
    constexpr bool operator!=(const Site& other) const { return !(*this == other); }
};

}  // namespace sim

// This place in the source, one value per textual occurrence.
#define SIM_HERE \
    ::sim::Site { __LINE__, __COUNTER__ }
