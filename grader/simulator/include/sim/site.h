// The place of a barrier or a warp intrinsic in the source.
//
// Threads must synchronize at the same place. A return address cannot identify it: unrolling gives one barrier several
// addresses, and tail merging gives several barriers one. So a site is a source line and a counter, which neither
// optimization changes. The counter distinguishes two calls on one line.
#pragma once

namespace sim {

struct Site {
    unsigned line;
    unsigned counter;
    constexpr bool operator==(const Site& other) const { return line == other.line && counter == other.counter; }
    constexpr bool operator!=(const Site& other) const { return !(*this == other); }
};

}  // namespace sim

// This place in the source; a distinct value per textual occurrence.
#define SIM_HERE \
    ::sim::Site { __LINE__, __COUNTER__ }
