/* The library says which version it is. */
#include <commandbus/version.h>
#include <criterion/criterion.h>
#include <stdio.h>

Test(version, is_three_numbers_separated_by_dots)
{
    int major, minor, patch, used = 0;
    const char *version = cb_version_string();

    int fields = sscanf(version, "%d.%d.%d%n", &major, &minor, &patch, &used);

    cr_assert_eq(fields, 3, "version is '%s'", version);
    cr_assert_eq(version[used], '\0', "something follows the version in '%s'", version);
}
