// Restricts a process to named files with Landlock, by raw system calls.
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

namespace {

// Structures of the Linux kernel, declared here because older systems have no header for them.
struct Ruleset {
    uint64_t files;
    uint64_t network;
    uint64_t scope;
};
struct __attribute__((packed)) PathRule {
    uint64_t allowed;
    int32_t folder;
};

enum : uint64_t {
    execute = 1 << 0,
    write_file = 1 << 1,
    read_file = 1 << 2,
    read_folder = 1 << 3,
    truncate_file = 1 << 14,
    device_control = 1 << 15,
    first_rights = (1 << 13) - 1,  // all rights in version 1 of Landlock's ABI
    tcp = 3,                       // the rights to bind and connect TCP sockets
    scope = 3,                     // no signals or abstract sockets to outside processes
};
constexpr uint64_t file_rights = execute | write_file | read_file | truncate_file | device_control;
enum { create_ruleset = 444, add_rule = 445, restrict_self = 446, rule_of_path = 1, ask_version = 1 };

bool allow(int ruleset, const char* path, uint64_t rights) {
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return true;  // a path that does not exist needs no rule
    struct stat status;
    if (fstat(place, &status) == 0 && !S_ISDIR(status.st_mode)) rights &= file_rights;
    PathRule rule{rights, place};
    bool done = syscall(add_rule, ruleset, rule_of_path, &rule, 0) == 0;
    close(place);
    return done;
}

}  // namespace

namespace confine {

bool only_files(const char* const* readable, int reads, const char* const* writable, int writes) {
    long version = syscall(create_ruleset, nullptr, 0, ask_version);
    if (version < 1) return false;
    Ruleset wanted{first_rights, 0, 0};
    if (version >= 2) wanted.files |= 1 << 13;  // LANDLOCK_ACCESS_FS_REFER: move files between folders
    if (version >= 3) wanted.files |= truncate_file;
    if (version >= 5) wanted.files |= device_control;
    if (version >= 4) wanted.network = tcp;
    if (version >= 6) wanted.scope = scope;
    size_t size = version >= 6 ? sizeof wanted : version >= 4 ? 16 : 8;
    int ruleset = static_cast<int>(syscall(create_ruleset, &wanted, size, 0));
    if (ruleset < 0) return false;
    bool done = true;
    for (int i = 0; i < reads; ++i) done = allow(ruleset, readable[i], execute | read_file | read_folder) && done;
    for (int i = 0; i < writes; ++i) done = allow(ruleset, writable[i], wanted.files) && done;
    done = done && syscall(restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

}  // namespace confine
