#include "thrust/random.h"
