/* The configuration that comes with this tree: config/ and what the table of keys says of it. */
#include "config_sources.h"
#include "config_support.h"

#include <ctype.h>
#include <json-c/json.h>

TestSuite(profiles, .init = folder_open, .fini = folder_close);

/* A domain that a profile enables, with its slots. */
static void expect_domain(const config *c, const char *name, bool enabled, int slots)
{
    const config_domain *d = domain_of(c, name);

    cr_expect_eq(d->enabled, enabled, "%s", name);
    if (enabled)
        cr_expect_eq(d->concurrent_messages, slots, "%s: %lld", name,
                     (long long)d->concurrent_messages);
}

/* CFG.1 */
Test(profiles, the_ratelimited_worker_calls_fx_and_risk_and_nothing_else)
{
    OWNED(config) c = load(.dir = our_configuration(), .profiles = "ratelimited-worker");

    cr_expect(c->command_handlers && !c->process_execution && !c->reply_processing);
    expect_domain(c, "fx", true, 2);
    expect_domain(c, "risk", true, 2);
    expect_domain(c, "payments", false, 0);
    cr_expect_eq(warned.n, 0);
}

/* CFG.1 */
Test(profiles, the_payments_worker_runs_payments_and_leaves_fx_and_risk_to_others)
{
    OWNED(config) c = load(.dir = our_configuration(), .profiles = "payments-worker");

    cr_expect(c->command_handlers && c->process_execution && c->reply_processing);
    expect_domain(c, "fx", false, 0);
    expect_domain(c, "risk", false, 0);
    expect_domain(c, "payments", true, 10);
}

/* CFG.1 */
Test(profiles, the_multipurpose_worker_does_everything)
{
    OWNED(config) c = load(.dir = our_configuration(), .profiles = "multipurpose-worker");

    cr_expect(c->command_handlers && c->process_execution && c->reply_processing);
    expect_domain(c, "fx", true, 2);
    expect_domain(c, "risk", true, 3);
    expect_domain(c, "payments", true, 10);
}

/* CFG.1 */
Test(profiles, of_payments_have_the_step_map)
{
    static const char *const profiles[] = { "payments-worker", "multipurpose-worker" };
    static const char *const expected[][3] = {
        { "bookFx", "fx", "BookFx" },
        { "bookRisk", "risk", "BookRisk" },
        { "submitPayment", "payments", "SubmitPayment" },
    };

    for (size_t k = 0; k < 2; k++) {
        OWNED(config) c = load(.dir = our_configuration(), .profiles = profiles[k]);
        cr_expect_eq(c->n_steps, 3);
        for (size_t i = 0; i < 3; i++) {
            const config_step *s = step_of(c, expected[i][0]);
            cr_expect_str_eq(s->domain, expected[i][1]);
            cr_expect_str_eq(s->command_type, expected[i][2]);
        }
    }
}

/* A worker makes the queues of what its steps send to: those of payments are not everybody's. */
Test(profiles, the_common_file_knows_nothing_of_payments)
{
    OWNED(config) c = load(.dir = our_configuration(), .profiles = "reporting-worker");

    cr_expect_eq(c->n_steps, 0);
    cr_expect_eq(c->n_domains, 1);
    cr_expect_eq(c->n_processes, 0);
}

/* CFG.6: of a key that others take for their default, the default is the same. */
Test(profiles, a_default_of_all_domains_is_the_default_of_each)
{
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        const config_key *from = key->fallback ? key_named(key->fallback) : key;
        cr_assert(from, "%s: there is no %s", key->path, key->fallback);
        cr_expect_eq(from->type, key->type, "%s", key->path);
        cr_expect_eq(from->min, key->min, "%s", key->path);
        cr_expect_eq(from->max, key->max, "%s", key->path);
        if (key->fallback)
            cr_expect_str_eq(from->initial, key->initial, "%s", key->path);
    }
}

Test(profiles, every_file_of_the_folder_loads)
{
    DIR *dir = opendir(our_configuration());
    int n = 0;

    for (struct dirent *entry; (entry = readdir(dir));) {
        char name[256];
        snprintf(name, sizeof name, "%s", entry->d_name);
        char *suffix = strstr(name, ".cfg");
        if (!suffix || strcmp(name, "commandbus.cfg") == 0)
            continue;
        *suffix = '\0';
        OWNED(config) c = load(.dir = our_configuration(), .profiles = name);
        n++;
    }
    closedir(dir);
    cr_expect_geq(n, 3);
}

/* Reads config/commandbus.cfg line by line; with each commented setting ("#key = value;", and no
 * space behind the #) brought to life, and <d> and so on taken for a name. */
static char *revived(void)
{
    char path[1100], line[512];
    char *text = calloc(1, 64 * 1024);

    snprintf(path, sizeof path, "%s/commandbus.cfg", our_configuration());
    FILE *file = fopen(path, "r");
    cr_assert(file);
    while (fgets(line, sizeof line, file)) {
        char *hash = line + strspn(line, " ");
        size_t spaces = *hash == '#' ? strspn(hash + 1, " ") : 0;
        /* Prose begins with one space. */
        if (*hash == '#' && spaces != 1)
            *hash = ' ';
        for (char *c = line; *c && (hash = strpbrk(c, "<>")) && !strchr(line, '"'); c = hash + 1)
            *hash = *hash == '<' ? 'x' : ' ';
        strcat(text, line);
    }
    fclose(file);
    return text;
}

/* The line of a setting, alone: from its beginning to the newline. */
static void line_at(const char *text, int number, char *out, size_t size)
{
    while (--number)
        text = strchr(text, '\n') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

static bool same_value(const config_key *key, const void *item)
{
    char value[16 * 1024] = { 0 }; /* large enough for any item */
    cb_error e = { 0 };

    cr_assert(key_parse(key, value, key->initial, &e), "%s: %s", key->path, e.message);
    json_object *expected = key_json(key, value), *found = key_json(key, item);
    bool same =
        strcmp(json_object_to_json_string(expected), json_object_to_json_string(found)) == 0;
    json_object_put(expected);
    json_object_put(found);
    key_clear(key, value);
    return same;
}

/* The values as the file says them, before anything is derived from them. */
static config *read_only(const char *text)
{
    OWNED(config) c = NULL;
    cb_error e = { 0 };
    bool found = false;

    cr_assert(config_new(&c, &e));
    config_loader loader = { .config = c };
    cr_assert(config_read_file_at(&loader, write_file("commandbus.cfg", text), &found, &e), "%s",
              e.message);
    cr_assert(found);
    return config_take(&c);
}

Test(profiles, the_common_file_has_every_key_with_its_default_and_its_help)
{
    char *text = revived();
    OWNED(config) c = read_only(text);

    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        const config_section *section = key_section(key);
        const char *item = !section->item_size                       ? NULL
                           : strcmp(section->name, "domains") == 0   ? "xd"
                           : strcmp(section->name, "processes") == 0 ? "xType"
                           : section->is_open                        ? "xset.output-folder"
                                                                     : "xs";
        const config_said *said = config_who(c, key, item);
        char line[512];

        cr_assert(said, "config/commandbus.cfg has no line for %s", key->path);
        line_at(text, atoi(strrchr(said->origin, ':') + 1), line, sizeof line);
        cr_expect(strstr(line, "  # ") && strcmp(strstr(line, "  # ") + 4, key->help) == 0,
                  "%s: the comment is not the help '%s': %s", key->path, key->help, line);
        if (key->initial)
            cr_expect(same_value(key, config_find(c, section, item ? item : "")),
                      "%s has another default in config/commandbus.cfg: %s", key->path, line);
    }
    free(text);
}

Test(profiles, the_table_of_keys_is_sound)
{
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        cr_expect(key->help && *key->help, "%s", key->path);
        cr_expect(key->initial || key->without, "%s has no default and does not say so", key->path);
        cr_expect_eq(key_find(key_section(key), key_leaf(key)), key, "%s is there twice",
                     key->path);
        cr_expect_eq(strchr(key->path, '<') != NULL, key_section(key)->item_size != 0, "%s",
                     key->path);
        for (const char *letter = key_leaf(key); !key_section(key)->is_open && *letter; letter++)
            cr_expect(islower((unsigned char)*letter) || *letter == '-', "%s", key->path);
    }
}
