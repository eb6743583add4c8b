// What drawing programs include: nothing is drawn here, and no buffer is shared with OpenGL.
#pragma once
#include <GL/gl.h>
