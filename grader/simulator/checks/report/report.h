// The report: findings and counters as JSON, for Python.
#pragma once

namespace sim::checks {

// Valid until the next call. grader/simulator/report.py describes the contents.
const char* write_report();
void forget_report();
// A launch was refused or aborted: its unwritten outputs are not reported.
void note_failed_launch();

}  // namespace sim::checks
