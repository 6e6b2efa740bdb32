/* What is drawn on a terminal: the whole of it as a picture, or how far a piece of work is. */
#include "terminal.h"

#include "utf8.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

double terminal_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The picture. Signals only leave a note; what waits reads it. */
static const char screen_enter_text[] = "\033[?1049h\033[?25l\033[2J";
static const char screen_leave_text[] = "\033[?25h\033[?1049l";

static volatile sig_atomic_t screen_ended, screen_resized, screen_stopped, screen_is_taken;
static struct termios screen_before; /* the terminal as it was */
static bool screen_has_keys;         /* stdin is a terminal, `screen_before` is set */

bool screen_is_possible(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Also called by the signal handler: nothing here allocates or locks. */
static void screen_write(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, text, length);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        }
    }
}

static void screen_give_back(void)
{
    if (!screen_is_taken)
        return;
    screen_is_taken = 0;
    screen_write(screen_leave_text, sizeof screen_leave_text - 1);
    if (screen_has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &screen_before);
}

static void screen_on_signal(int number)
{
    if (number == SIGWINCH)
        screen_resized = 1;
    else if (number == SIGTSTP)
        screen_stopped = 1;
    else if (screen_ended++ > 0) { /* a server that does not answer: nobody reads the note */
        screen_give_back();
        _exit(128 + number);
    }
}

static void screen_take(void)
{
    struct termios keys;

    screen_has_keys = tcgetattr(STDIN_FILENO, &screen_before) == 0;
    if (screen_has_keys) {
        keys = screen_before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
    screen_is_taken = 1;
    screen_write(screen_enter_text, sizeof screen_enter_text - 1);
}

static void screen_handle_signals(void (*handler)(int))
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP };
    struct sigaction action = { .sa_handler = handler };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void screen_enter(void)
{
    screen_ended = screen_resized = screen_stopped = 0;
    screen_take();
    screen_handle_signals(screen_on_signal);
}

void screen_leave(void)
{
    screen_give_back();
    screen_handle_signals(SIG_DFL);
}

/* Ctrl-Z: the shell gets its terminal, and we take it again when we are continued. */
static void screen_stop_for_a_while(void)
{
    screen_stopped = 0;
    screen_give_back();
    raise(SIGSTOP);
    screen_take();
    screen_resized = 1;
}

/* True for q. False too when there are no more keys; then *fd is no longer looked at. */
static bool screen_key_ends(int *fd)
{
    char key;
    ssize_t n = read(*fd, &key, 1);

    if (n == 0)
        *fd = -1;
    return n == 1 && (key == 'q' || key == 'Q');
}

screen_event screen_wait(double seconds)
{
    static struct pollfd keys = { .fd = STDIN_FILENO, .events = POLLIN };
    double end = terminal_clock() + seconds;

    if (!screen_has_keys)
        keys.fd = -1;
    for (double left = seconds; left > 0; left = end - terminal_clock()) {
        /* In slices: a signal that came just before the poll is seen at the next one. */
        int ms = left > 0.2 ? 200 : (int)(left * 1000) + 1;
        if (poll(&keys, 1, ms) == 1 && (keys.revents & (POLLIN | POLLHUP)) &&
            screen_key_ends(&keys.fd))
            screen_ended = 1;
        if (screen_stopped)
            screen_stop_for_a_while();
        if (screen_ended)
            return SCREEN_QUIT;
        if (screen_resized) {
            screen_resized = 0;
            return SCREEN_RESIZED;
        }
    }
    return SCREEN_TIME;
}

static struct winsize screen_size(void)
{
    struct winsize size = { 0 };

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
    return size;
}

/* As much of the line as fits: colours take no room, a character one column. */
static void screen_write_line(FILE *out, const char *line, size_t length, size_t width)
{
    size_t column = 0;

    for (size_t i = 0; i < length;) {
        size_t bytes = 1;
        if (line[i] == '\033') {
            while (i + bytes < length && line[i + bytes - 1] != 'm')
                bytes++;
        } else if (column++ < width) {
            bytes = utf8_length(line + i);
            bytes = bytes ? bytes : 1;
        } else {
            i += 1;
            continue;
        }
        fwrite(line + i, 1, bytes, out);
        i += bytes;
    }
    fputs("\033[0m\033[K", out);
}

void screen_draw(const char *text)
{
    struct winsize size = screen_size();
    char *picture = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&picture, &length);

    if (!out)
        return;
    fputs("\033[H", out);
    for (size_t row = 0; *text && row < size.ws_row; row++) {
        size_t line = strcspn(text, "\n");
        fputs(row > 0 ? "\r\n" : "", out);
        screen_write_line(out, text, line, size.ws_col);
        text += line + (text[line] == '\n');
    }
    fputs("\033[J", out);
    if (fclose(out) == 0)
        screen_write(picture, length);
    free(picture);
}

/* Progress. */

#define TOLD_SECONDS 5 /* between two plain lines */

static volatile sig_atomic_t progress_interrupted;

static void progress_on_signal(int number)
{
    (void)number;
    progress_interrupted = 1;
}

static void progress_handle_signals(bool ours)
{
    struct sigaction action = { .sa_flags = (int)SA_RESETHAND };

    if (ours)
        action.sa_handler = progress_on_signal;
    else
        action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool progress_is_interrupted(void)
{
    return progress_interrupted;
}

double progress_seconds(const progress *p)
{
    return terminal_clock() - p->start;
}

void progress_start(progress *p, const cli *c, const char *what, size_t total)
{
    *p = (progress){ .what = what,
                     .total = total,
                     .quiet = c->quiet,
                     .shown = !c->quiet && isatty(STDERR_FILENO),
                     .start = terminal_clock() };
    progress_interrupted = 0;
    progress_handle_signals(true);
}

void progress_tell(progress *p)
{
    p->told = !p->quiet && !p->shown;
}

static void progress_draw_bar(double part)
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
    double now = terminal_clock();

    if (p->told && now - p->last >= TOLD_SECONDS) {
        fprintf(stderr, "%s %zu/%zu\n", p->what, done, p->total);
        p->last = now;
    }
    if (!p->shown || (done < p->total && now - p->last < 0.1))
        return;
    p->last = now;

    double took = now - p->start;
    double rate = took > 0 ? (double)done / took : 0;
    fprintf(stderr, "\r\033[K%s ", p->what);
    if (p->total > 0) {
        progress_draw_bar((double)done / (double)p->total);
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
    progress_handle_signals(false);
}
