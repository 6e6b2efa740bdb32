/* How to connect to another database of a server. */
#ifndef KIT_CONNINFO_H
#define KIT_CONNINFO_H

/* A libpq connection string as `url`, for `database`. The caller frees it; NULL when the URL is
 * not one, or without memory. */
char *cb_test_conninfo(const char *url, const char *database);

#endif
