/* The smallest program that uses the installed library. */
#include <commandbus/client.h>
#include <stdio.h>

const char *another(void);
const char *handler(void);

int main(void)
{
    printf("%s %s %s\n", another(), handler(), cb_version_string());
    return another()[0] == 'c' && handler()[0] == 'e' ? 0 : 1;
}
