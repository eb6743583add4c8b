// This program confines itself and then executes a compiler, or a program of `grader run --jail`.
//
// usage: compile FOLDER MEGABYTES CPU_SECONDS PROCESSES [PATH...] -- COMPILER ARGUMENTS...
//
// A limit of 0 is none. FOLDER is the working folder and the only writable one. Only the PATHs may be read; without any PATH, a bubblewrap
// around this program restricts reading.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"

int main(int count, char** arguments) {
    int rest = 5;
    while (rest < count && strcmp(arguments[rest], "--") != 0) ++rest;
    if (rest + 1 >= count) {
        fputs("usage: compile FOLDER MEGABYTES CPU_SECONDS PROCESSES [PATH...] -- COMPILER ARGUMENTS...\n", stderr);
        return 2;
    }
    const char* folder = arguments[1];
    if (chdir(folder) != 0) {
        perror(folder);
        return 2;
    }
    auto number = [&](int i) { return static_cast<size_t>(strtoull(arguments[i], nullptr, 10)); };
    confine::limit({number(2), number(3), 64, 256, number(4)});
    if (rest > 5 && !confine::only_files(arguments + 5, rest - 5, &folder, 1)) {
        fputs("the program cannot be confined: no Landlock\n", stderr);
        return 2;
    }
    if (!confine::no_reaching_out()) {
        fputs("the program cannot be confined: no seccomp\n", stderr);
        return 2;
    }
    execv(arguments[rest + 1], arguments + rest + 1);
    perror(arguments[rest + 1]);
    return 2;
}
