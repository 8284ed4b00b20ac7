// What nvcc includes before every source.
#include <math.h>
#include <stdlib.h>
