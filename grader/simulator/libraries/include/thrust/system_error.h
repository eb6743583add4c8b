#include "thrust/detail/system.h"
