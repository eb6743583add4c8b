// CUDA's own place for host_defines.h.
#pragma once

#include "../host_defines.h"
