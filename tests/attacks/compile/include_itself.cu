// Includes itself recursively.
#include __FILE__
int twice_over;
