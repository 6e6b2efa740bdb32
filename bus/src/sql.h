/* An SQL file compiled into the library. See bus/cmake/EmbedSql.cmake. */
#ifndef CB_SQL_FILE_H
#define CB_SQL_FILE_H

typedef struct {
    int version;      /* its number; 0 for functions, which have none */
    const char *name; /* The file name without its number and ".sql". */
    const char *text;
    const char *checksum; /* SHA-256 of the file's bytes, in hex */
} cb_sql_file;

#endif
