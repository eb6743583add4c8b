#include "thrust/tuple.h"
