// Correct and misbehaving launchers, which the runner calls like those of a kernel file.
// Each takes (const float* x, float* out, int n).
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const float* x(void** a) { return *static_cast<const float**>(a[0]); }
static float* out(void** a) { return *static_cast<float**>(a[1]); }
static int n(void** a) { return *static_cast<int*>(a[2]); }

extern "C" {
int grader_call_double_it(void** a) {
    for (int i = 0; i < n(a); ++i) out(a)[i] = 2 * x(a)[i];
    return 0;
}
int grader_call_half_of_it(void** a) {
    for (int i = 0; i < n(a) / 2; ++i) out(a)[i] = 2 * x(a)[i];
    return 0;
}
int grader_call_nothing(void**) { return 0; }
int grader_call_crash(void** a) {
    *const_cast<volatile int*>(reinterpret_cast<int*>(8)) = n(a);
    return 0;
}
int grader_call_abort_it(void**) { abort(); }
int grader_call_hang(void**) {
    for (volatile int i = 0;; i = i + 1) {
    }
}
int grader_call_sleep(void**) {
    for (;;) pause();
}
int grader_call_leave(void**) { exit(0); }
int grader_call_leave_quietly(void**) { _exit(3); }
int grader_call_flood(void**) {
    for (;;) {
        puts("a line that says nothing, again and again, until somebody stops it");
    }
}
int grader_call_say(void** a) {
    printf("\033[2Jn is %d\n", n(a));
    fflush(stdout);
    return grader_call_double_it(a);
}
int grader_call_refuse(void**) { return 9; }
int grader_call_change_input(void** a) {
    grader_call_double_it(a);
    const_cast<float*>(x(a))[0] = 1;
    return 0;
}
int grader_call_close_all(void** a) {
    grader_call_double_it(a);
    for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
    return 0;
}
int grader_call_orphan(void** a) {
    if (fork() == 0) pause();
    grader_call_double_it(a);
    _exit(0);
}
int grader_call_forge(void**) {
    for (int descriptor = 3; descriptor < 1024; ++descriptor)
        if (write(descriptor, "done 0\n", 7) < 0) continue;
    _exit(0);
}
// Writes a forged reply instead of the runner's: each float of x is one byte of it.
int grader_call_answer(void** a) {
    int size = n(a);
    char* bytes = static_cast<char*>(malloc(static_cast<size_t>(size)));
    for (int i = 0; i < size; ++i) bytes[i] = static_cast<char>(static_cast<int>(x(a)[i]));
    grader_call_double_it(a);
    for (int descriptor = 3; descriptor < 1024; ++descriptor) {
        int room = 1 << 20;
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        send(descriptor, bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
    }
    for (;;) pause();
}
}
