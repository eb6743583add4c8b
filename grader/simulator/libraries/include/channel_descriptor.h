// Textures and surfaces: sim/textures.h. nvcc gives it to every file; here the front end does where one is used.
#pragma once
#include "sim/textures.h"
