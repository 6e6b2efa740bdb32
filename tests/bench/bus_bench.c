/* tests/bench/run bus: figures of the bus, as JSON on stdout, progress on stderr. */
#include "bench.h"

#include <string.h>

/* One of the parts by name, or all. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(json_object *to);
    } parts[] = { { "send", bench_send }, { "life", bench_life }, { "history", bench_history } };

    PQfinish(bench_prepare());
    json_object *out = json_object_new_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0)
            parts[i].run(out);
    }
    bench_print(out);
    json_object_put(out);
    return 0;
}
