/* The version of a process type that was left out is 1. */
#include <commandbus/process.h>
