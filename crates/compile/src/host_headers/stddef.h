#ifndef RUNNER_STDDEF_H
#define RUNNER_STDDEF_H
typedef long ptrdiff_t;
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#endif
