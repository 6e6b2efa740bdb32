/* Files under the output folder that are whole or not there. */
#include "store.h"

#include <commandbus/uuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report_settings.h"

#define FILE_LIMIT  (128 * 1024 * 1024)
#define PART_ENDING ".part"

enum {
    FOLDER_MODE = 0750,
    FILE_MODE = 0640, /* account data: for the worker and its group */
};

static void close_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define OWNED_FD __attribute__((cleanup(close_fd))) int

static bool fail(const file_path *path, const char *doing, cb_error *e)
{
    return cb_fail(e, CB_AGAIN, "%s %s: %s", doing, path->text, strerror(errno));
}

static int open_root(void)
{
    return open(settings.output_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The folder of a path; -1 with errno, ENOENT when it is not there. A link is not followed. */
static int open_folder(int root, const file_path *path)
{
    return openat(root, path->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_folder(int root, const file_path *path)
{
    if (mkdirat(root, path->folder, FOLDER_MODE) == 0)
        fsync(root); /* its name must last as long as what will be in it */
    else if (errno != EEXIST)
        return -1;
    return open_folder(root, path);
}

/* The last file of a process takes its folder along: one that is not empty stays. */
static void leave_folder(int root, const file_path *path)
{
    unlinkat(root, path->folder, AT_REMOVEDIR);
}

/* ".query-….json.<anything>.part"; of any file when the path is NULL. */
static bool is_part_of(const char *name, const file_path *path)
{
    size_t length = strlen(name), stem = path ? strlen(path->file) : 0;
    size_t ending = strlen(PART_ENDING);

    if (name[0] != '.' || length <= ending || strcmp(name + length - ending, PART_ENDING) != 0)
        return false;
    return !path || (strncmp(name + 1, path->file, stem) == 0 && name[1 + stem] == '.');
}

/* Removes what attempts that were killed have left. One that still runs finds its part gone, and
 * the file there or is run again. */
static void sweep(int folder, const file_path *path)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (!dir) {
        close_fd(&copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (is_part_of(entry->d_name, path))
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(dir);
}

bool store_has(const file_path *path, bool *ret, cb_error *e)
{
    OWNED_FD root = open_root();
    OWNED_FD folder = root < 0 ? -1 : open_folder(root, path);
    struct stat status;

    *ret = false;
    if (folder < 0)
        return (root >= 0 && errno == ENOENT) || fail(path, "looking for", e);
    if (fstatat(folder, path->file, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fail(path, "looking for", e);
    sweep(folder, path);
    if (fsync(folder) != 0)
        return fail(path, "keeping", e);
    *ret = true;
    return true;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes += written;
        n -= (size_t)written;
    }
    return true;
}

/* The bytes under a hidden name, on the disk. */
static bool write_part(int folder, const char *part, const char *bytes, size_t n)
{
    OWNED_FD fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);

    return fd >= 0 && fchmod(fd, FILE_MODE) == 0 && write_all(fd, bytes, n) && fsync(fd) == 0;
}

/* Another run for this file has swept our part away: then its own is in place. */
static bool is_there(int folder, const file_path *path)
{
    struct stat status;

    return errno == ENOENT && fstatat(folder, path->file, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool store_write(const file_path *path, const char *bytes, size_t n, cb_error *e)
{
    OWNED_FD root = open_root();
    OWNED_FD folder = root < 0 ? -1 : make_folder(root, path);
    char part[160];

    if (folder < 0)
        return fail(path, "making the folder of", e);
    snprintf(part, sizeof part, ".%s.%s" PART_ENDING, path->file, cb_uuid_new().text);
    if (!write_part(folder, part, bytes, n) ||
        (renameat(folder, part, folder, path->file) != 0 && !is_there(folder, path))) {
        int why = errno;
        unlinkat(folder, part, 0);
        leave_folder(root, path);
        errno = why;
        return fail(path, "writing", e);
    }
    sweep(folder, path);
    return fsync(folder) == 0 || fail(path, "keeping", e);
}

static bool read_all(int fd, char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t got = read(fd, bytes, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        n -= (size_t)got;
    }
    return true;
}

bool store_read(const file_path *path, char **ret, size_t *n, cb_error *e)
{
    OWNED_FD root = open_root();
    OWNED_FD folder = root < 0 ? -1 : open_folder(root, path);
    OWNED_FD fd = folder < 0
                      ? -1
                      : openat(folder, path->file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (root >= 0 && fd < 0 && errno == ENOENT)
        return cb_fail(e, CB_DATA, "there is no file %s", path->text);
    if (fd < 0 || fstat(fd, &status) != 0)
        return fail(path, "opening", e);
    if (!S_ISREG(status.st_mode) || status.st_size > FILE_LIMIT)
        return cb_fail(e, CB_DATA, "%s is not a file of ours", path->text);
    char *bytes = malloc((size_t)status.st_size + 1);
    if (!bytes || !read_all(fd, bytes, (size_t)status.st_size)) {
        free(bytes);
        return fail(path, "reading", e);
    }
    bytes[status.st_size] = '\0';
    *ret = bytes;
    *n = (size_t)status.st_size;
    return true;
}

bool store_remove(const file_path *path, bool *removed, cb_error *e)
{
    OWNED_FD root = open_root();
    OWNED_FD folder = root < 0 ? -1 : open_folder(root, path);

    *removed = false;
    if (folder < 0)
        return (root >= 0 && errno == ENOENT) || fail(path, "removing", e);
    *removed = unlinkat(folder, path->file, 0) == 0;
    if (!*removed && errno != ENOENT)
        return fail(path, "removing", e);
    /* Of all its commands: one that went to the TSQ owes nothing, and nobody else would come by. */
    sweep(folder, NULL);
    if (fsync(folder) != 0)
        return fail(path, "removing", e);
    leave_folder(root, path);
    return true;
}

cb_outcome store_outcome(cb_context *ctx, const cb_error *e)
{
    return e->code == CB_DATA ? cb_permanent(ctx, "FILE_MISSING", "%s", e->message)
                              : cb_transient(ctx, "STORE_FAILED", "%s", e->message);
}
