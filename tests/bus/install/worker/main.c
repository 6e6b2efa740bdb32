/* The smallest program that uses the installed engine of the worker. */
#include <commandbus/worker.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    printf("%s %s\n", cb_level_name(CB_LEVEL_WARN), cb_version_string());
    return strcmp(cb_level_name(CB_LEVEL_WARN), "warn");
}
