// CUDA also provides host_defines.h at this path.
#pragma once

#include "../host_defines.h"
