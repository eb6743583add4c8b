#include "thrust/reduce.h"
