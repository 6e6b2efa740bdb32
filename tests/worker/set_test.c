/* Loading handler sets from files; tests/modules has the ones that must be refused. */
#include <commandbus/set.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char modules[512], broken[512], folder[64];

static void open_folder(void)
{
    snprintf(modules, sizeof modules, "%s/tests/modules", getenv("COMMANDBUS_BUILD_DIR"));
    snprintf(broken, sizeof broken, "%.500s/broken", modules);
    strcpy(folder, "/tmp/commandbus-sets-XXXXXX");
    cr_assert(mkdtemp(folder));
}

static void close_folder(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(set, .init = open_folder, .fini = close_folder);

/* A file of the test's own folder; returns its path in static storage. */
static const char *put_file(const char *name, const char *text)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    cr_assert(out, "%s", path);
    fputs(text, out);
    fclose(out);
    return path;
}

#define expect_load_refused(dir, name, text)                                             \
    do {                                                                                 \
        cb_set *set_ = NULL;                                                             \
        cb_error e_ = { 0 };                                                             \
        cr_assert(!cb_set_load((dir), (name), &set_, &e_), "%s was loaded", #name);      \
        cr_expect_null(set_);                                                            \
        cr_expect_eq(e_.code, CB_MISUSE, "%s", cb_code_name(e_.code));                   \
        cr_expect(strstr(e_.message, (text)) || strstr(e_.hint, (text)),                 \
                  "'%s' is not in: %s | %s", (text), e_.message, e_.hint);               \
        cr_expect(!cb_set_load((dir), (name), &set_, NULL), "%s needs an error", #name); \
    } while (0)

Test(set, gives_its_manifest)
{
    OWNED(cb_set) set = NULL;
    cb_error e = { 0 };

    cr_assert(cb_set_load(modules, "trial", &set, &e), "%s", e.message);

    cr_expect_str_eq(cb_set_module(set)->name, "trial");
    cr_expect_gt(cb_set_module(set)->n_handlers, 5);
    cr_expect(strstr(cb_set_file(set), "/trial.so"), "%s", cb_set_file(set));
}

Test(set, is_opened_once_when_loaded_and_closed_once_when_freed)
{
    char log[128], found[64] = "";
    cb_set *set = NULL;
    snprintf(log, sizeof log, "%s", put_file("log", ""));
    setenv("TRIAL_LOG", log, 1);

    cr_assert(cb_set_load(modules, "trial", &set, NULL));
    cb_set_free(set);

    FILE *in = fopen(log, "r");
    size_t n = fread(found, 1, sizeof found - 1, in);
    fclose(in);
    found[n] = '\0';
    cr_expect_str_eq(found, "opened\nclosed\n");
    unsetenv("TRIAL_LOG");
}

Test(set, is_told_its_settings_before_it_is_opened)
{
    static const cb_setting colour = { "color", "red" }, known = { "colour", "blue" };
    char log[128], found[64] = "";
    cb_set *set = NULL;
    cb_error e = { 0 };
    snprintf(log, sizeof log, "%s", put_file("log", ""));
    setenv("TRIAL_LOG", log, 1);

    cr_assert(
        !cb_set_load_with(modules, "trial", &(cb_module_config){ NULL, &colour, 1 }, &set, &e));
    cr_expect(strstr(e.message, "trial.so failed to open: there is no setting color"), "%s",
              e.message);
    cr_assert(cb_set_load_with(modules, "trial", &(cb_module_config){ NULL, &known, 1 }, &set, &e),
              "%s", e.message);
    cb_set_free(set);

    FILE *in = fopen(log, "r");
    size_t n = fread(found, 1, sizeof found - 1, in);
    fclose(in);
    found[n] = '\0';
    cr_expect_str_eq(found, "blue\nopened\nclosed\n");
    unsetenv("TRIAL_LOG");
}

Test(set, that_takes_no_settings_is_given_none)
{
    static const cb_setting colour = { "colour", "red" };
    cb_set *set = NULL;
    cb_error e = { 0 };

    cr_assert(
        !cb_set_load_with(modules, "booking", &(cb_module_config){ NULL, &colour, 1 }, &set, &e));
    cr_expect(strstr(e.message, "booking.so takes no settings: drop handlers.booking.colour"), "%s",
              e.message);
}

Test(set, that_was_freed_can_be_loaded_again)
{
    for (int i = 0; i < 3; i++) {
        OWNED(cb_set) set = NULL;
        cr_assert(cb_set_load(modules, "trial", &set, NULL));
    }
    cb_set_free(NULL);
}

/* WRK.13: which ABI the file has and which this worker speaks; the rest of the manifest is
 * garbage. */
Test(set, of_another_abi_is_refused_before_anything_else_of_it_is_believed)
{
    expect_load_refused(broken, "wrong_abi",
                        "/wrong_abi.so was built for ABI 7, this worker speaks 6: "
                        "rebuild it against commandbus 0.");
}

/* WRK.13 */
Test(set, whose_manifest_is_wrong_is_refused_with_the_reason)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        { "wrong_name", "calls itself 'other': rename the file to other.so or say "
                        "CB_MODULE(wrong_name, …)" },
        { "bad_name", "calls itself '../Bad'" },
        { "no_name", "calls itself ''" },
        { "duplicate_type",
          "command type 'Fine' of set 'duplicate_type' has two handlers, 2 and 4" },
        { "no_handlers", "has no handlers" },
        { "no_type", "handler 2 of set 'no_type' has no command type" },
        { "no_function", "command type 'Hollow' of set 'no_function' has no function" },
        { "bad_route", "route 2 of set 'bad_route', GET /bad{id}, needs a method, a path such as "
                       "/api/things/{id}" },
        { "no_manifest", "is not a handler set: it has no symbol cb_module_manifest" },
        { "undefined_symbol", "undefined symbol: cb_of_another_version" },
    };

    for (size_t i = 0; i < CB_COUNT(cases); i++)
        expect_load_refused(broken, cases[i].name, cases[i].text);
}

Test(set, whose_open_fails_is_refused_in_its_own_words)
{
    expect_load_refused(broken, "refusing", "/refusing.so failed to open: the rate table is empty");
    expect_load_refused(broken, "refusing", "Fill it.");
    expect_load_refused(broken, "silent", "its open() failed without a reason");
}

Test(set, that_is_missing_is_refused_with_what_there_is)
{
    put_file("payments.so", "");
    put_file("fx.so", "");
    put_file("libfoo.so.1", "");
    put_file("Notes.so", "");
    put_file("README.md", "");

    expect_load_refused(folder, "payment", "there is no handler set 'payment'");
    expect_load_refused(folder, "payment", folder);
    expect_load_refused(folder, "payment", "The folder holds: fx, payments.");
}

Test(set, that_is_missing_and_like_no_other_gets_no_suggestion)
{
    OWNED(cb_set) set = NULL;
    cb_error e = { 0 };
    put_file("payments.so", "");

    cr_assert(!cb_set_load(folder, "reporting", &set, &e));

    cr_expect_str_eq(e.hint, "The folder holds: payments.");
}

Test(set, that_is_missing_among_very_many_is_still_refused_in_one_line)
{
    OWNED(cb_set) set = NULL;
    cb_error e = { 0 };
    for (int i = 0; i < 60; i++) {
        char name[64];
        snprintf(name, sizeof name, "a_rather_long_name_of_a_handler_set_%03d.so", i);
        put_file(name, "");
    }

    cr_assert(!cb_set_load(folder, "fx", &set, &e));

    cr_expect(strstr(e.hint, " …") && strlen(e.hint) < sizeof e.hint, "%s", e.hint);
}

Test(set, in_an_empty_or_missing_folder_says_which_setting_to_look_at)
{
    expect_load_refused(folder, "fx", "worker.modules-dir");
    expect_load_refused("/nowhere/at/all", "fx", "/nowhere/at/all: No such file or directory");
    expect_load_refused("/nowhere/at/all", "fx", "worker.modules-dir");
    expect_load_refused(put_file("file", ""), "fx", "Not a directory");
    expect_load_refused("", "fx", "worker.modules-dir");
    expect_load_refused(NULL, "fx", "worker.modules-dir");
}

Test(set, whose_file_is_not_a_shared_object_is_refused_in_the_words_of_the_loader)
{
    put_file("text.so", "this is text, and long enough to be more than the header of an ELF file.");
    put_file("empty.so", "");

    expect_load_refused(folder, "text", "invalid ELF header");
    expect_load_refused(folder, "empty", "file too short");
}

Test(set, that_is_not_a_file_is_refused_without_waiting_for_it)
{
    char path[128];
    snprintf(path, sizeof path, "%s/pipe.so", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/folder.so", folder);
    cr_assert_eq(mkdir(path, 0700), 0);

    expect_load_refused(folder, "pipe", "/pipe.so is not a file");
    expect_load_refused(folder, "folder", "/folder.so is not a file");
}

Test(set, is_never_looked_for_outside_its_folder)
{
    static const char *const names[] = { "../trial",
                                         "trial/..",
                                         "",
                                         "Trial",
                                         "9fx",
                                         "fx-1",
                                         "a_name_that_is_longer_than_any_queue_of_pgmq_may_be" };

    for (size_t i = 0; i < CB_COUNT(names); i++)
        expect_load_refused(modules, names[i], "invalid handler set name");
    expect_load_refused(modules, NULL, "invalid handler set name");
}
