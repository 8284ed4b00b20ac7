#include <cstdio>
#include "k.cu"
#define HEADER "k.cpp"
#include HEADER
#define () const { return a[0]; } };
=amespace 