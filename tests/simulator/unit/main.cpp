// Runs the test case named by the first argument, or all cases. The second argument is the seed of random cases, by
// default 1.
#include <string.h>

#include "runtime/arena.h"
#include "seed.h"
#include "unit.h"

unsigned unit::seed = 1;

int main(int count, char** arguments) {
    const char* wanted = count > 1 ? arguments[1] : "all";
    if (count > 2) unit::seed = static_cast<unsigned>(strtoul(arguments[2], nullptr, 10));
    sim::arena::allocate(64, 0);  // map device memory first, so that no other memory lies directly behind it
    unsigned run = 0;
    for (unit::Case* one = unit::Case::first; one; one = one->next) {
        if (strcmp(wanted, "all") != 0 && strcmp(wanted, one->name) != 0) continue;
        one->run();
        ++run;
    }
    if (run == 0) printf("there is no case %s\n", wanted);
    if (unit::failed) printf("seed %u\n", unit::seed);
    return run == 0 || unit::failed;
}
