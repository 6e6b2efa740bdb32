/* Making scripts up. */
#include "script_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"
#include "seed.h"

typedef struct {
    unsigned *seed;
    unsigned trouble; /* of 100: how often something goes wrong */
    FILE *out;
    int wait_ms;
} maker;

static bool draw_chance(maker *m, unsigned of_100)
{
    return test_random(m->seed, 100) < of_100;
}

/* A success stands last and stays one: what was done under a key is done. */
static void plan(maker *m, const char *key, const char *letters, const char *last)
{
    fprintf(m->out, ", \"%s\": \"", key);
    for (int i = 0; i < 4 && draw_chance(m, m->trouble); i++)
        fputc(letters[test_random(m->seed, (unsigned)strlen(letters))], m->out);
    fputc(draw_chance(m, m->trouble / 4) ? last[test_random(m->seed, (unsigned)strlen(last))] : 'S',
          m->out);
    fputc('"', m->out);
}

static void make_undo(maker *m, const char *const *kinds, unsigned n, const char *letters)
{
    unsigned kind = test_random(m->seed, n);

    if (kinds[kind])
        fprintf(m->out, ", \"undo\": \"%s\"", kinds[kind]);
    plan(m, "undoPlan", letters, "S");
}

static void make_step(maker *m)
{
    static const char *const kinds[] = { "inline", "inline", NULL };

    fprintf(m->out, "{\"k\": \"step\", \"m\": %u, \"ms\": %d", 1 + test_random(m->seed, 3),
            m->wait_ms / 10);
    plan(m, "plan", "TTPDIB", "BBP");
    make_undo(m, kinds, 3, "TPDBI");
}

static void make_command(maker *m)
{
    static const char *const kinds[] = { "cmd", "result", "inline", NULL };

    fprintf(m->out, "{\"k\": \"cmd\", \"m\": %u, \"dom\": \"%s\", \"ms\": %d",
            1 + test_random(m->seed, 3), draw_chance(m, 50) ? "fx" : "risk", m->wait_ms);
    plan(m, "plan", "TTPDD", "BBP");
    make_undo(m, kinds, 4, "TPDB");
    if (draw_chance(m, m->trouble / 5))
        fputs(", \"refuse\": true", m->out);
}

static void make_operation(maker *m, bool *declined)
{
    unsigned kind = test_random(m->seed, 100);

    if (kind < 30)
        make_step(m);
    else if (kind < 42)
        fputs("{\"k\": \"local\"", m->out);
    else if (kind < 70)
        make_command(m);
    else if (kind < 80)
        fprintf(m->out, "{\"k\": \"wait\", \"n\": %u, \"ms\": %d", 1 + test_random(m->seed, 2),
                m->wait_ms);
    else if (kind < 87)
        fputs("{\"k\": \"side\"", m->out);
    else if (kind < 94)
        fputs("{\"k\": \"skip\"", m->out);
    else if (kind < 97 || *declined || !draw_chance(m, m->trouble * 2))
        fputs("{\"k\": \"version\"", m->out);
    else
        fputs((*declined = true, "{\"k\": \"decline\""), m->out);
    fputc('}', m->out);
}

char *script_make(unsigned *seed, const char *log, int wait_ms)
{
    static const char *const actions[] = { "TSQ", "COMPENSATE", "FAIL" };
    static const unsigned troubles[] = { 0, 10, 30, 50 };
    char *text = NULL;
    size_t size;
    unsigned n = 1 + test_random(seed, SCRIPT_MOST);
    bool declined = false;
    maker m = { .seed = seed,
                .trouble = troubles[test_random(seed, 4)],
                .wait_ms = wait_ms,
                .out = open_memstream(&text, &size) };

    fprintf(m.out, "{\"log\": \"%s\", \"on_deadline\": \"%s\", \"ops\": [", log,
            actions[test_random(seed, 3)]);
    for (unsigned i = 0; i < n; i++) {
        fputs(i ? ", " : "", m.out);
        make_operation(&m, &declined);
    }
    if (n < SCRIPT_MOST && draw_chance(&m, 25)) /* a way back from far */
        fputs(", {\"k\": \"decline\"}", m.out);
    fputs("]}", m.out);
    fclose(m.out);
    return text;
}
