/* The smallest program that uses the installed library. */
#include <commandbus/version.h>
#include <stdio.h>

const char *another(void);

int main(void)
{
    printf("%s %s\n", another(), cb_version_string());
    return another()[0] == 'c' ? 0 : 1;
}
