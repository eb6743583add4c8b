// Includes the course's solution.
#include "@SOLUTION@"
