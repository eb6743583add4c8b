// Includes the course's solution. A macro holds the path.
#define PLACE "@SOLUTION@"
#include PLACE
