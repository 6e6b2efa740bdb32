/* A shared object, but no handler set. */
#include <commandbus/api.h>

CB_API int unrelated(void);
int unrelated(void)
{
    return 1;
}
