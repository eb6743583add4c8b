// Includes files outside the submission's folder, with `..` in the path.
#include "../../../../../../../../../../@SOLUTION@"
