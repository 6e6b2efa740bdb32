/* The commandbus CLI. */
#include <commandbus/version.h>
#include <stdio.h>

int main(void)
{
    printf("commandbus %s\n", cb_version_string());
    return 0;
}
