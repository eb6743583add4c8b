// A library that tests a jail. The runner loads it in place of a kernel. Its constructor tries operations that the jail
// must prevent, and prints those that succeeded.
//
// Its commands come from standard input, one per line: "read PATH", "write FOLDER", "change FILE", "connect PORT",
// "talk SOCKET", "parent PID".
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void say(const char* what, const char* object = "") {
    printf("could %s%s%s\n", what, *object ? " " : "", object);
    fflush(stdout);
}

void try_read(const char* path) {
    char byte;
    int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, &byte, 1) >= 0) say("read", path);
}

void try_write(const char* folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/canary", folder);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    if (file < 0) return;
    say("write", path);
    close(file);
    unlink(path);
}

void try_connect(int port) {
    if (socket(AF_INET, SOCK_DGRAM, 0) >= 0) say("open a UDP socket");
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (tcp >= 0 && connect(tcp, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) say("connect");
}

void try_talk(const char* path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    auto* name = reinterpret_cast<sockaddr*>(&address);
    int kinds[] = {SOCK_STREAM, SOCK_DGRAM};
    for (int kind : kinds) {
        int file = socket(AF_UNIX, kind, 0);
        if (file >= 0 && connect(file, name, sizeof address) == 0) say("connect to", path);
        if (file >= 0 && sendto(file, "x", 1, MSG_NOSIGNAL, name, sizeof address) == 1) say("send to", path);
    }
}

void try_change(const char* path) {
    if (chmod(path, 0600) == 0) say("change the rights of", path);
    if (utimensat(AT_FDCWD, path, nullptr, 0) == 0) say("change the time of", path);
}

void try_parent(int pid) {
    if (kill(pid, 0) == 0) say("signal the grader");
    if (syscall(SYS_tgkill, pid, pid, 0) == 0) say("signal a thread of the grader");
    if (ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) say("trace the grader");
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    try_read(path);
}

void try_processes() {
    pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) {
        waitpid(child, nullptr, 0);
        say("start a process");
    }
    if (syscall(SYS_unshare, 0x10000000) == 0) say("make a user namespace");
    if (memfd_create("canary", 0) >= 0) say("make a file in memory");
}

struct Canary {
    Canary() {
        char line[4096];
        while (fgets(line, sizeof line, stdin)) {
            line[strcspn(line, "\n")] = 0;
            if (strncmp(line, "read ", 5) == 0) try_read(line + 5);
            if (strncmp(line, "write ", 6) == 0) try_write(line + 6);
            if (strncmp(line, "connect ", 8) == 0) try_connect(atoi(line + 8));
            if (strncmp(line, "talk ", 5) == 0) try_talk(line + 5);
            if (strncmp(line, "change ", 7) == 0) try_change(line + 7);
            if (strncmp(line, "parent ", 7) == 0) try_parent(atoi(line + 7));
        }
        try_processes();
        puts("sang");
        fflush(stdout);
    }
} canary;

}  // namespace
