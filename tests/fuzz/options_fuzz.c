/* The command line of commandbus-worker, one word a line: refused, or what goes together does. */
#include "fuzz.h"

#include "options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    char program[] = "commandbus-worker";
    char *argv[FUZZ_LINES + 2] = { program };
    options o;
    cb_error e = { 0 };

    for (int i = 0; i < in.n; i++)
        argv[i + 1] = in.line[i];
    if (options_parse(in.n + 1, argv, &o, &e)) {
        FUZZ_CHECK(o.settings.n <= (size_t)in.n, "%zu settings", o.settings.n);
        FUZZ_CHECK(!o.json || o.check_config || o.replay, "--json alone");
        FUZZ_CHECK(!o.replay || !o.replay_id != !o.replay_all, "--replay of what?");
        for (size_t i = 0; i < o.settings.n; i++)
            FUZZ_CHECK(o.settings.items[i], "a setting that is NULL");
    } else {
        fuzz_refused(&e, CB_MISUSE);
    }
    options_done(&o);
    return 0;
}
