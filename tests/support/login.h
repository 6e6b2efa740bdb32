/* Logins that are members of the bus's roles, on the fixture's database. */
#ifndef TEST_SUPPORT_LOGIN_H
#define TEST_SUPPORT_LOGIN_H

#include "fixture.h"

typedef struct {
    char name[64];
    PGconn *conn;
    cb_db *db;
} login;

/* A new login, member of `roles` (such as "commandbus_sender"), with its own connections. */
login login_open(const char *roles);

/* Disconnects, and drops the login with all it owns. */
void login_close(login *l);

#endif
