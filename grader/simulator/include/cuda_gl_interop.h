// For programs that include it: nothing is drawn, and no buffer is shared with OpenGL.
#pragma once
#include <GL/gl.h>
