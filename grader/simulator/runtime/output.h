// What kernels have printed.
#pragma once

namespace sim {

const char* take_output();  // since the last call; valid until the next one
void show_output();         // to standard output, unless somebody takes it
void keep_output();         // from now on somebody takes it

// %n writes to wherever it is told: where a submission is confined, such a format ends it. CUDA's printf has none.
void refuse_writing_counts(const char* format, const void* code);

}  // namespace sim
