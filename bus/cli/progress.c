/* How far a long piece of work is, on a terminal; and Ctrl-C between two of its pieces. */
#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define TOLD_SECONDS 5 /* between two plain lines */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void handle_signals(bool ours)
{
    struct sigaction action = { .sa_flags = (int)SA_RESETHAND };

    if (ours)
        action.sa_handler = on_signal;
    else
        action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool progress_is_interrupted(void)
{
    return interrupted;
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + 1e-9 * (double)(to->tv_nsec - from->tv_nsec);
}

double progress_seconds(const progress *p)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return seconds_between(&p->start, &now);
}

void progress_start(progress *p, const cli *c, const char *what, size_t total)
{
    *p = (progress){
        .what = what, .total = total, .quiet = c->quiet, .shown = !c->quiet && isatty(STDERR_FILENO)
    };
    clock_gettime(CLOCK_MONOTONIC, &p->start);
    interrupted = 0;
    handle_signals(true);
}

void progress_tell(progress *p)
{
    p->told = !p->quiet && !p->shown;
}

static void draw_bar(double part)
{
    char bar[31];
    int full = (int)(part * 30);

    for (int i = 0; i < 30; i++)
        bar[i] = i < full ? '#' : i == full ? '>' : ' ';
    bar[30] = '\0';
    fprintf(stderr, "[%s] %3d%%  ", bar, (int)(part * 100));
}

void progress_show(progress *p, size_t done)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (p->told && seconds_between(&p->last, &now) >= TOLD_SECONDS) {
        fprintf(stderr, "%s %zu/%zu\n", p->what, done, p->total);
        p->last = now;
    }
    if (!p->shown || (done < p->total && seconds_between(&p->last, &now) < 0.1))
        return;
    p->last = now;

    double took = seconds_between(&p->start, &now);
    double rate = took > 0 ? (double)done / took : 0;
    fprintf(stderr, "\r\033[K%s ", p->what);
    if (p->total > 0) {
        draw_bar((double)done / (double)p->total);
        fprintf(stderr, "%zu/%zu  ", done, p->total);
    } else {
        fprintf(stderr, "%zu  ", done);
    }
    fprintf(stderr, "%.0f/s", rate);
    if (p->total > done && rate > 0) {
        long left = (long)((double)(p->total - done) / rate) + 1;
        fprintf(stderr, "  %ld:%02ld left", left / 60, left % 60);
    }
    fflush(stderr);
}

void progress_end(progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
    handle_signals(false);
}
