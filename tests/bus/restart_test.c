/* Leases over a restart of the server: who lived through it gets one visibility timeout to come
 * back. */
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claims.h"
#include "skip.h"

/* A server of the test's own, started and stopped with deploy/local/postgres, or in a container by
 * what COMMANDBUS_TEST_SERVER names. */
typedef struct {
    char dir[32];
    char url[256];
} own_server;

/* Runs that program; the first line it prints goes to `line`. False when it failed. */
static bool control(const own_server *s, const char *action, char *line, int size)
{
    char command[512], first[256] = "";

    const char *program = getenv("COMMANDBUS_TEST_SERVER");
    if (program)
        snprintf(command, sizeof command, "'%s' %s --dir %s 2>/dev/null", program, action, s->dir);
    else
        snprintf(command, sizeof command, "'%s/deploy/local/postgres' %s --dir %s 2>/dev/null",
                 getenv("COMMANDBUS_SOURCE_DIR"), action, s->dir);
    FILE *out = popen(command, "r");
    cr_assert(out);
    if (fgets(first, sizeof first, out))
        first[strcspn(first, "\n")] = '\0';
    if (line)
        snprintf(line, (size_t)size, "%s", first);
    return pclose(out) == 0;
}

static void start_server(own_server *s)
{
    cr_assert(control(s, "start", s->url, sizeof s->url), "the server did not start");
}

/* False where there are no server programs, as when the tests run against a container. */
static bool server_open(own_server *s)
{
    if (!getenv("COMMANDBUS_SOURCE_DIR"))
        return false;
    snprintf(s->dir, sizeof s->dir, "/tmp/commandbus-test.XXXXXX");
    cr_assert(mkdtemp(s->dir));
    chmod(s->dir, 0755); /* the server runs as another user when we are root */
    if (control(s, "start", s->url, sizeof s->url))
        return true;
    rmdir(s->dir);
    return false;
}

static own_server server;

/* Also when the test has failed half-way. */
static void server_close(void)
{
    if (server.url[0])
        control(&server, "destroy", NULL, 0);
}

static cb_db *open_bus(const own_server *s)
{
    cb_db *db = test_bus_open(s->url);
    cb_migrate_report report;
    cb_error e = { 0 };

    cr_assert(cb_migrate(db, &report, &e), "%s", e.message);
    cr_assert(cb_domain_register(db, "fx", NULL, &e), "%s", e.message);
    return db;
}

Test(restart, a_lease_that_expired_while_the_server_was_down_waits_one_vt_for_its_holder,
     .fini = server_close) /* DESIGN 2 */
{
    if (!server_open(&server))
        test_skip("no server can be started here");
    cb_db *db = open_bus(&server);
    cb_uuid ids[2];
    for (int i = 0; i < 2; i++)
        ids[i] = test_send_one(db, .data = "{}");
    OWNED(cb_claim) claim = test_claim(db, "holder", 2, 0.5);
    cr_assert_eq(cb_claim_count(claim), 2);
    size_t first = strcmp(cb_claim_at(claim, 0)->command_id.text, ids[0].text) == 0 ? 0 : 1;

    cr_assert(control(&server, "stop", NULL, 0));
    double down = test_clock();
    cb_db_free(db);
    while (test_clock() < down + 0.5)
        usleep(10000);
    start_server(&server);
    db = test_bus_open(server.url);
    PGconn *sql = test_pq_open(server.url);

    /* All leases are over, but nobody takes anything; the holder is back in time with its
     * outcome. */
    expect_value(
        sql, "t",
        "SELECT bool_and(lease_until < clock_timestamp()) FROM commandbus.command_metadata");
    OWNED(cb_claim) early = test_claim(db, "other", 2, 4);
    expect_value(sql, "t",
                 "SELECT clock_timestamp() < pg_postmaster_start_time() + interval '4 seconds'");
    cr_expect_eq(cb_claim_count(early) + cb_claim_exhausted(early), 0,
                 "taken from a holder that lives");
    expect_verdict(
        CB_SETTLED,
        test_settle_one(db, "holder", test_outcome(cb_claim_at(claim, first), CB_SUCCESS)));

    /* The other is not heard of again, and is claimed when one VT has passed since the start. */
    cb_claim *late = NULL;
    for (double end = test_clock() + patience_seconds; test_clock() < end && !late;) {
        late = test_claim(db, "other", 2, 4);
        if (cb_claim_count(late) == 0) {
            cb_claim_free(late);
            late = NULL;
        }
    }
    cr_assert(late, "never claimed again");
    cr_assert_eq(cb_claim_count(late), 1);
    cr_expect_str_eq(cb_claim_at(late, 0)->command_id.text, ids[1].text);
    cr_expect_eq(cb_claim_at(late, 0)->lease_no, 2);
    expect_value(sql, "t",
                 "SELECT updated_at >= pg_postmaster_start_time() + interval '4 seconds' "
                 "FROM commandbus.command_metadata WHERE status = 'IN_PROGRESS'");
    cb_claim_free(late);
    PQfinish(sql);
    cb_db_free(db);
}

/* As a crash does: the postmaster is gone at once, its children follow. */
static void crash(const own_server *s)
{
    char status[256];
    int pid = 0;

    cr_assert(control(s, "status", status, sizeof status), "it does not run");
    const char *told = strstr(status, "pid ");
    cr_assert(told && sscanf(told, "pid %d", &pid) == 1 && pid > 1, "%s", status);
    cr_assert_eq(kill(pid, SIGKILL), 0);
    while (kill(pid, 0) == 0)
        usleep(1000);
}

/* A recovery takes its time, and a promoted standby was started long ago: the start of the server
 * says nothing then. */
Test(restart, after_a_crash_the_time_counts_from_the_first_claim,
     .fini = server_close) /* DESIGN 2 */
{
    if (!server_open(&server))
        test_skip("no server can be started here");
    cb_db *db = open_bus(&server);
    test_send_one(db, .data = "{}");
    OWNED(cb_claim) claim = test_claim(db, "holder", 1, 0.5);
    cr_assert_eq(cb_claim_count(claim), 1);

    crash(&server);
    cb_db_free(db);
    start_server(&server);
    PGconn *sql = test_pq_open(server.url);
    expect_value(sql, "0", "SELECT count(*) FROM commandbus.uptime");
    wait_until(sql,
               "SELECT clock_timestamp() > pg_postmaster_start_time() + interval '1.5 seconds'");

    db = test_bus_open(server.url);
    OWNED(cb_claim) early = test_claim(db, "other", 1, 1);
    cr_expect_eq(cb_claim_count(early), 0, "taken from a holder that lives");
    cb_claim *late = NULL;
    for (double end = test_clock() + patience_seconds; test_clock() < end && !late;) {
        late = test_claim(db, "other", 1, 1);
        if (cb_claim_count(late) == 0) {
            cb_claim_free(late);
            late = NULL;
        }
    }
    cr_assert(late, "never claimed again");
    expect_value(
        sql, "t",
        "SELECT updated_at >= u.since + interval '1 second' FROM commandbus.command_metadata, commandbus.uptime u");
    cb_claim_free(late);
    PQfinish(sql);
    cb_db_free(db);
}
