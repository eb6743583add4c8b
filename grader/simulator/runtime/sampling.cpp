#include "sampling.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "registry.h"
#include "settings.h"

namespace sim::sampling {

Totals totals;

namespace {

struct Kernel {
    char* name;
    uint64_t launches;
    Kernel* next;
};
Kernel* kernels = nullptr;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// A seed that is short enough to type again.
uint64_t fresh_seed() {
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<uint32_t>(getpid());
    return number % 1000000;
}

uint64_t launches_before(const char* name) {
    MutexLock guard(lock);
    Kernel* kernel = kernels;
    while (kernel && strcmp(kernel->name, name) != 0) kernel = kernel->next;
    if (!kernel) kernel = kernels = new Kernel{strdup(name), 0, kernels};
    return kernel->launches++;
}

}  // namespace

bool is_on() { return settings.checks && (settings.check_blocks || settings.check_launches); }

bool Clusters::next() {
    // Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S
    bool chosen = next_random(random) % left < needed;
    --left;
    needed -= chosen;
    return chosen;
}

bool checks_launch(const char* kernel) {
    if (!is_on()) return settings.checks;
    if (totals.launches++ == 0) totals.seed = settings.has_check_seed ? settings.check_seed : fresh_seed();
    if (settings.check_launches && launches_before(kernel) >= settings.check_launches) return false;
    ++totals.checked_launches;
    return true;
}

Clusters choose_clusters(uint64_t clusters, unsigned cluster_size) {
    uint64_t needed = settings.check_blocks ? (settings.check_blocks + cluster_size - 1) / cluster_size : clusters;
    if (needed > clusters) needed = clusters;
    uint64_t state = totals.seed ^ totals.launches << 32;
    return {clusters, needed, next_random(state)};
}

void forget() {
    totals = {};
    while (Kernel* kernel = kernels) {
        kernels = kernel->next;
        free(kernel->name);
        delete kernel;
    }
}

}  // namespace sim::sampling
