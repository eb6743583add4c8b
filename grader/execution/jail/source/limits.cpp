// Sets the resource limits of this process and gives up its privileges.
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"

namespace {

void set(int resource, rlim_t value) {
    if (value == 0) return;
    rlimit both{value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

}  // namespace

namespace confine {

void limit(const Limits& limits) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);  // other processes of the same user may not trace it or read its memory
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    __user_cap_header_struct self{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct nothing[_LINUX_CAPABILITY_U32S_3]{};
    syscall(SYS_capset, &self, nothing);  // a root process that cannot become another user drops its capabilities
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    set(RLIMIT_AS, static_cast<rlim_t>(limits.megabytes) << 20);
    set(RLIMIT_CPU, limits.cpu_seconds);
    set(RLIMIT_FSIZE, static_cast<rlim_t>(limits.file_megabytes) << 20);
    set(RLIMIT_NOFILE, limits.files);
    set(RLIMIT_NPROC, limits.processes);
}

}  // namespace confine
