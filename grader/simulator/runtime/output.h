// The output of printf in kernels.
#pragma once

namespace sim {

const char* take_output();  // since the last call; valid until the next one
void show_output();         // to standard output, unless keep_output was called
void keep_output();         // from now on the caller of take_output receives it

// %n writes through its argument. In a confined submission such a format ends the launch. CUDA's printf does not
// support %n.
void refuse_writing_counts(const char* format, const void* code);

}  // namespace sim
