// The report: findings and counters as JSON, for Python.
#pragma once

namespace sim::checks {

// Valid until the next call. grader/simulator/report.py describes the contents.
const char* write_report();
void forget_report();
// Called when a launch was refused or aborted. The report then does not list unwritten outputs.
void note_failed_launch();

}  // namespace sim::checks
