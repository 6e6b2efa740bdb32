/* UUIDs as the sixteen bytes that the database's binary format holds. */
#ifndef CB_UUID_BYTES_H
#define CB_UUID_BYTES_H

#include <commandbus/uuid.h>

/* False unless `text` is a UUID in its usual 36 characters, of either case. NULL is none. */
bool uuid_to_bytes(const char *text, unsigned char bytes[16]);
void uuid_to_text(const unsigned char bytes[16], char text[37]);

#endif
