// What nvcc includes before every source.
#include <math.h>
#include <stdlib.h>

// The C library declares these in <sys/types.h>, which its <stdlib.h> includes.
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
