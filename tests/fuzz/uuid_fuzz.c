/* UUIDs: refused, or the same again when printed and read. */
#include "fuzz.h"

#include <strings.h>

#include "uuid_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TEXT(text, data, size);
    unsigned char bytes[16], again[16];
    cb_uuid id;

    bool is_one = uuid_to_bytes(text, bytes);
    FUZZ_CHECK(cb_uuid_parse(text, &id) == is_one, "two parsers, two answers");
    if (is_one) {
        FUZZ_CHECK(strlen(text) == 36 && strcasecmp(id.text, text) == 0, "%s", id.text);
        FUZZ_CHECK(uuid_to_bytes(id.text, again) && memcmp(bytes, again, 16) == 0, "%s", id.text);
    }
    if (size >= 16) { /* any sixteen bytes are one */
        uuid_to_text(data, id.text);
        FUZZ_CHECK(uuid_to_bytes(id.text, again) && memcmp(data, again, 16) == 0, "%s", id.text);
        cb_uuid named = cb_uuid_from_name(&id, text), same = cb_uuid_from_name(&id, text);
        FUZZ_CHECK(strcmp(named.text, same.text) == 0 && named.text[14] == '5', "%s", named.text);
    }
    return 0;
}
