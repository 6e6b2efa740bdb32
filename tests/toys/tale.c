/* The tale's functions. */
#include "tale.h"

int tale_counted;

stage tale_open(const cb_process_type *type)
{
    return stage_open(&type, 1, NULL, 0);
}

void tale_release(stage *s, const cb_process_type *type)
{
    stage_release(s, &type, 1, NULL, 0);
}

void tale_say(tale *t, const char *word)
{
    char *longer = NULL;

    cr_assert(asprintf(&longer, "%s%s%s", t->trail ? t->trail : "", t->trail ? " " : "", word) > 0);
    free(t->trail);
    t->trail = longer;
}

cb_outcome tale_count(cb_context *ctx, void *state)
{
    (void)ctx;
    tale_counted++;
    ((tale *)state)->count++;
    return CB_SUCCESS;
}

bool tale_approve(void *state, json_object *payload)
{
    (void)payload;
    ((tale *)state)->approved = true;
    return true;
}

bool tale_is_approved(const void *state)
{
    return ((const tale *)state)->approved;
}

void tale_retry(cb_uuid id)
{
    cb_error e;

    cr_assert(cb_process_retry(bus.db, id.text, "ann", "mended", NULL, &e), "%s", e.message);
}
