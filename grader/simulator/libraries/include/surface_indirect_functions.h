#include "sim/textures.h"
