/* The real commandbus-worker. See instance.h. */
#include "instance.h"

#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SETTINGS = 20,
    SETTING_SIZE = 512
};

static const char *from_run(const char *name)
{
    const char *found = getenv(name);

    if (!found)
        bench_die("%s is not set: start with tests/bench/run", name);
    return found;
}

/* HTTP is on, as in production, on a port that nobody has. */
static int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0)
        bench_die("no free port: %s", strerror(errno));
    close(fd);
    return ntohs(at.sin_port);
}

/* Returns how many there are. */
static int write_settings(char settings[SETTINGS][SETTING_SIZE], const instance *i,
                          const instance_options *o)
{
    bool sample = !o->settings && strcmp(o->set, "trial") != 0;
    const char *folder = from_run(sample ? "BENCH_SETS_DIR" : "BENCH_TRIAL_DIR");
    const char *domain = "domains." BENCH_DOMAIN;
    int n = 0;

    snprintf(settings[n++], SETTING_SIZE, "worker.modules-dir=%s", folder);
    snprintf(settings[n++], SETTING_SIZE, "worker.name=%s", i->name);
    snprintf(settings[n++], SETTING_SIZE, "http.port=%d", free_port());
    snprintf(settings[n++], SETTING_SIZE, "log.level=warn");
    for (int s = 0; o->settings && o->settings[s]; s++)
        snprintf(settings[n++], SETTING_SIZE, "%s", o->settings[s]);
    if (o->settings)
        return n;
    snprintf(settings[n++], SETTING_SIZE, "%s.handlers=%s", domain, o->set);
    snprintf(settings[n++], SETTING_SIZE, "%s.concurrent-messages=%d", domain, o->slots);
    snprintf(settings[n++], SETTING_SIZE, "%s.prefetch=%d", domain, o->prefetch);
    snprintf(settings[n++], SETTING_SIZE, "%s.use-notify=%s", domain, o->polls ? "false" : "true");
    return n;
}

static pid_t spawn(char **argv)
{
    pid_t parent = getpid(), pid;

    /* Not on the command line: it may have a password in it. */
    setenv("COMMANDBUS_DATABASE_URL", from_run("COMMANDBUS_TEST_URL"), 1);
    pid = fork();
    if (pid < 0)
        bench_die("no process: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        execv(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static void die_of(const instance *i, int status)
{
    if (WIFSIGNALED(status))
        bench_die("%s was ended by signal %d", i->name, WTERMSIG(status));
    bench_die("%s ended with %d", i->name, WEXITSTATUS(status));
}

/* Its first heartbeat says that every thread runs. */
static void wait_for_heartbeat(PGconn *conn, const instance *i)
{
    const char *params[] = { i->name };
    double until = bench_now() + 30;
    bool there = false;

    while (!there) {
        int status;
        if (waitpid(i->pid, &status, WNOHANG) == i->pid)
            die_of(i, status);
        if (bench_now() > until)
            bench_die("%s does not tell of itself", i->name);
        PGresult *found = bench_query(
            conn, "SELECT FROM commandbus.worker WHERE starts_with(worker, $1)", 1, params);
        there = PQntuples(found) > 0;
        PQclear(found);
        bench_pause(0.01);
    }
}

instance instance_start(PGconn *conn, const instance_options *options)
{
    static int started; /* names must differ: a worker that ended leaves its row for a moment */
    char settings[SETTINGS][SETTING_SIZE];
    char *argv[2 * SETTINGS + 2] = { (char *)from_run("COMMANDBUS_WORKER_BIN") };
    instance i;

    snprintf(i.name, sizeof i.name, "bench-%d-%d", (int)getpid(), started++);
    int n = write_settings(settings, &i, options);
    for (int s = 0; s < n; s++) {
        argv[1 + 2 * s] = "--set";
        argv[2 + 2 * s] = settings[s];
    }
    i.pid = spawn(argv);
    wait_for_heartbeat(conn, &i);
    return i;
}

static void tell(const instance *i, int sig)
{
    if (kill(i->pid, sig) != 0)
        bench_die("%s is gone: %s", i->name, strerror(errno));
}

void instance_stop(const instance *i)
{
    int status;

    tell(i, SIGCONT);
    tell(i, SIGTERM);
    if (waitpid(i->pid, &status, 0) != i->pid)
        bench_die("%s is lost: %s", i->name, strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die_of(i, status);
}

void instance_pause(const instance *i)
{
    tell(i, SIGSTOP);
}

void instance_resume(const instance *i)
{
    tell(i, SIGCONT);
}

double instance_memory(const instance *i, const char *field)
{
    char path[64], line[256];
    long kib = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)i->pid);
    FILE *status = fopen(path, "re");
    while (status && kib < 0 && fgets(line, sizeof line, status)) {
        size_t n = strlen(field);
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            kib = strtol(line + n + 1, NULL, 10);
    }
    if (kib < 0)
        bench_die("%s has no %s", path, field);
    fclose(status);
    return (double)kib * 1024 / 1e6;
}

/* What /proc/PID/stat shows as utime and stime, but to the nanosecond. */
double instance_cpu_seconds(const instance *i)
{
    clockid_t clock;
    struct timespec t;

    if (clock_getcpuclockid(i->pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        bench_die("no processor time of %s", i->name);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
