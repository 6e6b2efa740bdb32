/* UUIDs as the sixteen bytes that the database's binary format holds. */
#ifndef CB_UUID_BYTES_H
#define CB_UUID_BYTES_H

#include <commandbus/error.h>
#include <commandbus/uuid.h>

/* False unless `text` is a UUID in its usual 36 characters, of either case. NULL is none. */
bool uuid_to_bytes(const char *text, unsigned char bytes[16]);
void uuid_to_text(const unsigned char bytes[16], char text[37]);

/* NULL is fine; else CB_INVALID_DATA unless it is a UUID, calling it `what`. */
bool uuid_check(const char *text, const char *what, cb_error *e);

#endif
