// Drops root's rights and executes another program.
//
//   usage: drop_root USER [PROGRAM ARGUMENTS...]
//
// USER is a number, the id of both the user and the group.
//
// Without a program, only tests whether dropping the rights works: the exit status is 0 if it does.
//
// Python could do this itself, but it copies the page tables of its whole process (fork instead of vfork). With torch
// loaded, that takes ten times as long as this program.
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** arguments) {
    if (count < 2) {
        fputs("usage: drop_root USER [PROGRAM ARGUMENTS...]\n", stderr);
        return 2;
    }
    const unsigned user = static_cast<unsigned>(atoi(arguments[1]));
    if (user == 0 || setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 ||
        setresuid(user, user, user) != 0) {
        perror("root's rights cannot be given up");
        return 2;
    }
    if (count == 2) return 0;
    execv(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 2;
}
