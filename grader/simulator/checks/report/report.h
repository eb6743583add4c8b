// The report: findings and counters as JSON, for the Python side to name and to show.
#pragma once

namespace sim::checks {

// Valid until the next call. See grader/simulator/report.py for what is in it.
const char* write_report();
void forget_report();
// A launch was refused or ended half way: its unwritten outputs are not reported.
void note_failed_launch();

}  // namespace sim::checks
