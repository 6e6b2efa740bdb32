/* Numbers and ids in PostgreSQL's binary format: big-endian. */
#ifndef CB_WIRE_H
#define CB_WIRE_H

#include <stdint.h>

static inline void wire_put32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> (24 - 8 * i));
}

static inline void wire_put64(unsigned char *to, uint64_t value)
{
    wire_put32(to, (uint32_t)(value >> 32));
    wire_put32(to + 4, (uint32_t)value);
}

static inline uint32_t wire_get32(const char *from)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value = value << 8 | (unsigned char)from[i];
    return value;
}

static inline uint64_t wire_get64(const char *from)
{
    return (uint64_t)wire_get32(from) << 32 | wire_get32(from + 4);
}

#endif
