/* What every public header needs: visibility, linkage as C also from C++, and the attributes
 * that let compilers check callers. */
#ifndef COMMANDBUS_API_H
#define COMMANDBUS_API_H

#include <stddef.h>

/* Exported from the shared library; everything else is hidden. CB_API_DATA declares an object. */
#ifdef __cplusplus
#define CB_API      extern "C" __attribute__((visibility("default")))
#define CB_API_DATA CB_API
#else
#define CB_API      __attribute__((visibility("default")))
#define CB_API_DATA CB_API extern
#endif

/* Argument `fmt` is a printf format whose values start at argument `first` (0 for a va_list). */
#define CB_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* Ignoring the result is a bug. */
#define CB_NODISCARD __attribute__((warn_unused_result))

#endif
