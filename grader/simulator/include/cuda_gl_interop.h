// Lets programs that include CUDA's OpenGL header compile. The simulator draws nothing and shares no buffer with
// OpenGL.
#pragma once
#include <GL/gl.h>
