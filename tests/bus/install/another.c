/* A client. */
#include <commandbus/client.h>

const char *another(void);

const char *another(void)
{
    cb_error e;
    cb_uuid id = cb_uuid_new();
    OWNED(cb_db) db = NULL;

    if (!cb_uuid_parse(id.text, &id) || cb_db_open("host=127.0.0.1 port=1", &db, &e))
        return "?";
    return e.code == CB_LOST ? "commandbus" : "?";
}
