// Device math (first part; more to come).
#pragma once
#include <cstdint>
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>
