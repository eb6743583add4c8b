// Textures and surfaces: sim/textures.h. nvcc includes it in every file; here the front end does if a file uses one.
#pragma once
#include "sim/textures.h"
