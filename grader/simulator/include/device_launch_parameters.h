// Part of cuda_runtime.h here; kernel files may include it by this name.
#pragma once

#include "cuda_runtime.h"
