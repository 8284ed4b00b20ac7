// Every kernel of this source comes from a header.
#include <mine.cuh>
