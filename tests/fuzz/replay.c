/* Runs a harness once for every file of the folders that it is given: the corpus as a plain test,
 * with any compiler. libFuzzer brings a main() of its own. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    struct stat status;

    FUZZ_CHECK(in && fstat(fileno(in), &status) == 0, "cannot read %s", path);
    /* As large as what is in it: a harness must not read on. */
    uint8_t *bytes = malloc((size_t)status.st_size + (status.st_size == 0));
    FUZZ_CHECK(bytes, "no memory");
    *size = fread(bytes, 1, (size_t)status.st_size, in);
    fclose(in);
    return bytes;
}

static void replay(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);

    printf("%s\n", path); /* the last line tells which input it was */
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

static int replay_folder(const char *folder)
{
    struct dirent **files = NULL;
    int n = scandir(folder, &files, NULL, alphasort), count = 0;

    FUZZ_CHECK(n >= 0, "there is no folder %s", folder);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]->d_name);
        if (files[i]->d_name[0] != '.') {
            replay(path);
            count++;
        }
        free(files[i]);
    }
    free(files);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;

    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) == 0 && S_ISREG(status.st_mode))
            replay(argv[i]), count++;
        else
            count += replay_folder(argv[i]);
    }
    FUZZ_CHECK(count > 0, "there is nothing to run");
    return 0;
}
