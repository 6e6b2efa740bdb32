/* Making and reading UUIDs. */
#include <commandbus/uuid.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <uuid/uuid.h>

#include "uuid_bytes.h"

static const char digits[] = "0123456789abcdef";

/* Where the text has its hyphens: after bytes 4, 6, 8 and 10. */
static bool hyphen_before(int byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_to_text(const unsigned char bytes[16], char text[37])
{
    for (int i = 0; i < 16; i++) {
        if (hyphen_before(i))
            *text++ = '-';
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool uuid_to_bytes(const char *text, unsigned char bytes[16])
{
    if (!text)
        return false;
    for (int i = 0; i < 16; i++) {
        if (hyphen_before(i) && *text++ != '-')
            return false;
        int high = digit_value(text[0]);
        int low = high < 0 ? -1 : digit_value(text[1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
        text += 2;
    }
    return *text == '\0';
}

bool uuid_check(const char *text, const char *what, cb_error *e)
{
    unsigned char bytes[16];

    if (!text || uuid_to_bytes(text, bytes))
        return true;
    return cb_fail(e, CB_INVALID_DATA, "%s is not a UUID: '%.80s'", what, text);
}

bool cb_uuid_parse(const char *text, cb_uuid *ret)
{
    unsigned char bytes[16];

    if (!uuid_to_bytes(text, bytes))
        return false;
    uuid_to_text(bytes, ret->text);
    return true;
}

static void fill_random(unsigned char *bytes, size_t n)
{
    while (getrandom(bytes, n, 0) != (ssize_t)n) /* Up to 256 bytes come whole or not at all. */
        continue;
}

/* The clock in milliseconds, and a number that counts up within one. Never goes back in a thread,
 * also when the clock does. */
static uint64_t next_tick(unsigned start, unsigned *count)
{
    static _Thread_local uint64_t last_ms;
    static _Thread_local unsigned last_count;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (ms > last_ms) {
        last_ms = ms;
        last_count = start;
    } else if (++last_count > 0xFFF) { /* 4096 ids in a millisecond: borrow from the next one. */
        last_ms++;
        last_count = start;
    }
    *count = last_count;
    return last_ms;
}

cb_uuid cb_uuid_new(void)
{
    unsigned char bytes[16];
    unsigned count;
    cb_uuid id;

    fill_random(bytes + 6, 10);
    uint64_t ms = next_tick((unsigned)(bytes[6] << 8 | bytes[7]) & 0x7FF, &count);
    for (int i = 0; i < 6; i++)
        bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    bytes[6] = (unsigned char)(0x70 | count >> 8);
    bytes[7] = (unsigned char)count;
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3F));
    uuid_to_text(bytes, id.text);
    return id;
}

static cb_uuid from_name(const cb_uuid *space, const char *name, unsigned char version)
{
    unsigned char space_bytes[16] = { 0 }, bytes[16];
    cb_uuid id;

    uuid_to_bytes(space->text, space_bytes);
    uuid_generate_sha1(bytes, space_bytes, name, strlen(name));
    bytes[6] = (unsigned char)(version << 4 | (bytes[6] & 0x0F));
    uuid_to_text(bytes, id.text);
    return id;
}

cb_uuid cb_uuid_from_name(const cb_uuid *space, const char *name)
{
    return from_name(space, name, 5);
}

cb_uuid cb_uuid_derived(const cb_uuid *process_id, const char *name)
{
    return from_name(process_id, name, 8);
}

bool cb_uuid_is_derived(const cb_uuid *id)
{
    return id->text[14] == '8';
}
