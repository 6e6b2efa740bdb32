/* Values of configuration keys as people write them. */
#include "keys.h"

#include <criterion/criterion.h>

Test(size, is_bytes_or_has_a_binary_unit)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = { { "0", 0 },
                 { "1048576", 1048576 },
                 { "512KiB", 524288 },
                 { "1MiB", 1048576 },
                 { "2GiB", 2147483648 } };
    static const char *const bad[] = { "",
                                       "-1",
                                       "1MB",
                                       "1.5MiB",
                                       "KiB",
                                       "1 MiB",
                                       "0x10",
                                       "1mib",
                                       "9223372036854775807KiB",
                                       "99999999999999999999" };
    int64_t bytes = 0;
    char text[SIZE_SIZE];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert(size_parse(good[i].text, &bytes), "%s", good[i].text);
        cr_expect_eq(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!size_parse(bad[i], &bytes), "%s", bad[i]);
    cr_expect_str_eq(size_write(1048576, text, sizeof text), "1MiB");
    cr_expect_str_eq(size_write(1000, text, sizeof text), "1000");
}
