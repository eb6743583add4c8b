// Prints escape sequences, bidirectional marks and formulas, which affect terminals, spreadsheets and readers.
#include <stdio.h>

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    printf(
        "=1+1\n\x1b[2J\x1b]0;title\x07\x9b"
        "31m\r\b\v\f\0\xe2\x80\xae txet\xe2\x80\xa8\xef\xbc\x9d"
        "1+1\xed\xa0\x80\xff\n");
    fflush(stdout);
}
