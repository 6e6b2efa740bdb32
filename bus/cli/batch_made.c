/* What is said of a batch that was just made, of commands or of processes. */
#include "batch_made.h"

#include "fail.h"
#include "json_text.h"

#include <json-c/json.h>
#include <stdio.h>

void batch_made(const cli *c, const cb_uuid *id, size_t n)
{
    if (!c->json) {
        puts(id->text);
        fflush(stdout);
        return;
    }
    json_object *object = json_object_new_object();
    json_object_object_add(object, "batch_id", json_object_new_string(id->text));
    json_object_object_add(object, "total", json_object_new_int64((int64_t)n));
    json_print_adopt(object);
}

int batch_not_made(const cli *c, const cb_uuid *id, cb_error *e)
{
    if (e->code == CB_LOST)
        fail_hint(e,
                  "Whether it was created is unknown: commandbus batch show %s, and if it is not "
                  "there, the same again with --id %s.",
                  id->text, id->text);
    return cli_fail(c, e);
}
