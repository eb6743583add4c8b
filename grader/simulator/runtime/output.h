// The output of printf in kernels.
#pragma once

namespace sim {

const char* take_output();  // returns the text since the last call; valid until the next call
void show_output();         // prints the text to standard output, unless keep_output was called
void keep_output();         // the caller will take the text with take_output

// %n writes through its argument. In a confined submission such a format ends the launch. CUDA's printf does not
// support %n.
void refuse_writing_counts(const char* format, const void* code);

}  // namespace sim
