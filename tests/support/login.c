/* Creating and dropping logins. */
#include "login.h"

#include <stdio.h>
#include <unistd.h>

login login_open(const char *roles)
{
    static int created;
    char sql[512], conninfo[1024];
    login l = { 0 };

    snprintf(l.name, sizeof l.name, "test_login_%ld_%d", (long)getpid(), ++created);
    snprintf(sql, sizeof sql, "CREATE ROLE %s LOGIN PASSWORD 'test'; GRANT %s TO %s", l.name, roles,
             l.name);
    test_exec(bus.conn, sql);
    snprintf(conninfo, sizeof conninfo, "%s user='%s' password='test'", bus.conninfo, l.name);
    l.conn = test_pq_open(conninfo);
    l.db = test_bus_open(conninfo);
    return l;
}

void login_close(login *l)
{
    char sql[256];

    PQfinish(l->conn);
    cb_db_free(l->db);
    snprintf(sql, sizeof sql, "DROP OWNED BY %s; DROP ROLE %s", l->name, l->name);
    test_exec(bus.conn, sql);
}
