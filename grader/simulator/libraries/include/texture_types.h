// CUDA's header of this name: includes all of the simulator's textures and surfaces (sim/textures.h). nvcc includes it
// in every file. The front end includes it only in files that use textures or surfaces.
#pragma once
#include "sim/textures.h"
