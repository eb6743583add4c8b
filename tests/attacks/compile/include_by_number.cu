// Includes system files, so that compiler messages quote them.
#define PLACE </etc/passwd>
#include PLACE
