/* A database of its own for each test, on the server that COMMANDBUS_TEST_URL names. */
#ifndef TEST_SUPPORT_DATABASE_H
#define TEST_SUPPORT_DATABASE_H

/* The server's URL from the environment. Fails the test when there is none. */
const char *test_server_url(void);

/* Creates an empty database and returns how to connect to it (a libpq connection string); the
 * caller frees it with test_database_drop. Fails the test on any error. */
char *test_database_create(void);

/* The same, as a copy of database `template_name`, to which nobody may be connected. */
char *test_database_copy(const char *template_name);

/* How to connect to an existing database of that server. The caller frees it. */
char *test_database_conninfo(const char *database);

/* Throws the database away, with every connection to it, and frees the string. NULL is fine. */
void test_database_drop(char *conninfo);

#endif
