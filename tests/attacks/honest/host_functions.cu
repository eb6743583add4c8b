// Host code calls atomics, string functions and printf, and passes structures by value, all in host memory.
#include <atomic>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Row {
    float values[20];
    std::atomic<int>* calls;
};
static std::atomic<int> calls;
static const char names[3][8] = {"one", "two", "three"};

__attribute__((noinline)) static Row row(Row given) {
    for (float& value : given.values) value += 1.0f;
    given.calls->fetch_add(1);
    return given;
}
static Row (*volatile chosen)(Row) = row;
static void CUDART_CB count(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    Row made = chosen({{1, 2, 3}, &calls});
    const char* name = names[n % 3];
    char text[64];
    int length = snprintf(text, sizeof text, "%-*s|%.2s|%5.1f|%ld|%c%%", 8, name, names[2], double(made.values[0]),
                          long(n), 'x');
    int expected = 1;
    bool same = strlen(text) == size_t(length) && memcmp(text, name, strlen(name)) == 0 && strchr(text, '|') &&
                strcmp(strrchr(text, '|'), "|x%") == 0 && strnlen(name, 3) == 3 && atoi("12") == 12 &&
                !strncmp(names[2], "thr", 3) && strspn("aab", "a") == 2 && memchr(text, '|', sizeof text) == text + 8;
    calls.compare_exchange_strong(expected, 2);
    puts(same ? text : "differs");
    cudaLaunchHostFunc(stream, count, &calls);
    if (same && calls.load() > 1) reward(x, out, n, stream);
}
