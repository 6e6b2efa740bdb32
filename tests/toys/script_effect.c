/* Effects of scripts: a line each, and what comes of it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "script.h"

static void die(void)
{
    kill(getpid(), SIGKILL);
}

void (*script_die)(void) = die;

/* How often this effect was made before. */
static size_t runs_before(const char *path, const char *name)
{
    char line[300];
    size_t n = 0, length = strlen(name);
    FILE *f = fopen(path, "re");

    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, name, length) == 0 && line[length] == ' ';
    if (f)
        fclose(f);
    return n;
}

char script_effect(const char *log, const char *process_id, const char *name, const char *plan,
                   int attempt, const char *key)
{
    char path[1024], line[300];

    snprintf(path, sizeof path, "%s/%s", log, process_id);
    size_t run = runs_before(path, name), last = strlen(plan) - 1;
    char letter = plan[run < last ? run : last];
    int n = snprintf(line, sizeof line, "%s %zu %d %s %c\n", name, run, attempt, key, letter);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool written = fd >= 0 && write(fd, line, (size_t)n) == n;

    if (fd >= 0)
        close(fd);
    if (written && letter == 'D')
        script_die();
    return written ? letter : 0;
}

static const char *text_of(json_object *o, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(o, key, &value) ? json_object_get_string(value) : "";
}

char script_serve(json_object *data, int attempt, const char *key, json_object **result)
{
    json_object *undo = NULL;
    char letter = script_effect(text_of(data, "log"), text_of(data, "process_id"),
                                text_of(data, "name"), text_of(data, "plan"), attempt, key);

    json_object_object_get_ex(data, "undo", &undo);
    *result = letter == 'S' ? json_object_get(undo) : NULL;
    return letter;
}
