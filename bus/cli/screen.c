/* The whole terminal as a picture. Signals only leave a note; what waits reads it. */
#include "screen.h"

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

static const char enter_text[] = "\033[?1049h\033[?25l\033[2J";
static const char leave_text[] = "\033[?25h\033[?1049l";

static volatile sig_atomic_t ended, resized, stopped, is_taken;
static struct termios before; /* the terminal as it was */
static bool has_keys;         /* stdin is a terminal, `before` is set */

bool screen_is_possible(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Also called by the signal handler: nothing here allocates or locks. */
static void write_all(const char *text, size_t length)
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

static void give_back(void)
{
    if (!is_taken)
        return;
    is_taken = 0;
    write_all(leave_text, sizeof leave_text - 1);
    if (has_keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else if (number == SIGTSTP)
        stopped = 1;
    else if (ended++ > 0) { /* a server that does not answer: nobody reads the note */
        give_back();
        _exit(128 + number);
    }
}

static void take(void)
{
    struct termios keys;

    has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
    if (has_keys) {
        keys = before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
    }
    is_taken = 1;
    write_all(enter_text, sizeof enter_text - 1);
}

static void handle_signals(void (*handler)(int))
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP };
    struct sigaction action = { .sa_handler = handler };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void screen_enter(void)
{
    ended = resized = stopped = 0;
    take();
    handle_signals(on_signal);
}

void screen_leave(void)
{
    give_back();
    handle_signals(SIG_DFL);
}

/* Ctrl-Z: the shell gets its terminal, and we take it again when we are continued. */
static void stop_for_a_while(void)
{
    stopped = 0;
    give_back();
    raise(SIGSTOP);
    take();
    resized = 1;
}

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* True for q. False too when there are no more keys; then *fd is no longer looked at. */
static bool key_ends(int *fd)
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
    double end = now_seconds() + seconds;

    if (!has_keys)
        keys.fd = -1;
    for (double left = seconds; left > 0; left = end - now_seconds()) {
        /* In slices: a signal that came just before the poll is seen at the next one. */
        int ms = left > 0.2 ? 200 : (int)(left * 1000) + 1;
        if (poll(&keys, 1, ms) == 1 && (keys.revents & (POLLIN | POLLHUP)) && key_ends(&keys.fd))
            ended = 1;
        if (stopped)
            stop_for_a_while();
        if (ended)
            return SCREEN_QUIT;
        if (resized) {
            resized = 0;
            return SCREEN_RESIZED;
        }
    }
    return SCREEN_TIME;
}

static struct winsize size_of_terminal(void)
{
    struct winsize size = { 0 };

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
    return size;
}

/* As much of the line as fits: colours take no room, a character one column. */
static void write_line(FILE *out, const char *line, size_t length, size_t width)
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
    struct winsize size = size_of_terminal();
    char *picture = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&picture, &length);

    if (!out)
        return;
    fputs("\033[H", out);
    for (size_t row = 0; *text && row < size.ws_row; row++) {
        size_t line = strcspn(text, "\n");
        fputs(row > 0 ? "\r\n" : "", out);
        write_line(out, text, line, size.ws_col);
        text += line + (text[line] == '\n');
    }
    fputs("\033[J", out);
    if (fclose(out) == 0)
        write_all(picture, length);
    free(picture);
}
