/* Environment names: COMMANDBUS_ and the path, the item between the two ends of its key. */
#include "config_support.h"
#include "keys.h"

#include <ctype.h>

TestSuite(environment, .init = folder_open, .fini = folder_close);

#define STEPS                                                                        \
    "command-steps = { bookFx = { domain = \"fx\"; command-type = \"BookFx\"; }; };" \
    "processes = { PaymentStep = { }; };"

/* CFG.2: what S4's Deployments set. */
Test(environment, names_of_s4_all_work)
{
    OWNED(config) limited = load(.env = {
                                     "COMMANDBUS_FEATURES_COMMAND_HANDLERS=true",
                                     "COMMANDBUS_FEATURES_PROCESS_EXECUTION=false",
                                     "COMMANDBUS_FEATURES_REPLY_PROCESSING=false",
                                     "COMMANDBUS_DOMAINS_FX_ENABLED=true",
                                     "COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=2",
                                     "COMMANDBUS_DOMAINS_RISK_ENABLED=true",
                                     "COMMANDBUS_DOMAINS_RISK_CONCURRENT_MESSAGES=2",
                                     "COMMANDBUS_DOMAINS_PAYMENTS_ENABLED=false",
                                 });
    OWNED(config) payments = load(.dir = our_configuration(), .profiles = "payments-worker",
                                  .env = {
                                      "COMMANDBUS_FEATURES_COMMAND_HANDLERS=true",
                                      "COMMANDBUS_FEATURES_PROCESS_EXECUTION=true",
                                      "COMMANDBUS_FEATURES_REPLY_PROCESSING=true",
                                      "COMMANDBUS_DOMAINS_FX_ENABLED=false",
                                      "COMMANDBUS_DOMAINS_RISK_ENABLED=false",
                                      "COMMANDBUS_DOMAINS_PAYMENTS_ENABLED=true",
                                      "COMMANDBUS_DOMAINS_PAYMENTS_CONCURRENT_MESSAGES=12",
                                  });

    cr_expect(limited->command_handlers && !limited->process_execution &&
              !limited->reply_processing);
    cr_expect_eq(domain_of(limited, "fx")->concurrent_messages, 2);
    cr_expect_eq(domain_of(limited, "risk")->concurrent_messages, 2);
    cr_expect(!domain_of(limited, "payments")->enabled);
    cr_expect_eq(domain_of(payments, "payments")->concurrent_messages, 12);
    cr_expect(!domain_of(payments, "fx")->enabled);
    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

/* "domains.<d>.max-attempts" → "COMMANDBUS_DOMAINS_FX_MAX_ATTEMPTS". */
static void variable_of(const config_key *key, char *out, size_t size)
{
    const char *item = strncmp(key->path, "domains", 7) == 0          ? "fx"
                       : strncmp(key->path, "command-steps", 13) == 0 ? "bookFx"
                       : strncmp(key->path, "handlers", 8) == 0       ? "reporting.output-folder"
                                                                      : "PaymentStep";
    char path[KEY_PATH_SIZE];

    key_path(key, key_section(key)->item_size ? item : NULL, path, sizeof path);
    snprintf(out, size, "COMMANDBUS_%s", path);
    for (char *c = out; *c; c++)
        *c = *c == '.' || *c == '-' ? '_' : (char)toupper((unsigned char)*c);
}

Test(environment, reaches_every_key)
{
    for (const config_key *key = config_keys; key < config_keys + n_config_keys; key++) {
        char variable[256], pair[512];
        write_file("commandbus.cfg",
                   STEPS "domains = { fx = { handlers = [\"fx\", \"reporting\"]; }; };");
        variable_of(key, variable, sizeof variable);
        snprintf(pair, sizeof pair, "%s=%s", variable, "\x01");

        /* A value that nothing takes but texts without a rule: the error names the variable. */
        config *c = NULL;
        cb_error e = { 0 };
        bool loaded = try_loading(&(how){ .env = { pair } }, &c, &e);
        cr_expect(loaded ? key->type == KEY_TEXT : strstr(e.message, variable) != NULL, "%s: %s",
                  variable, e.message);
        cr_expect_eq(warned.n, 0, "%s", warned.last);
        config_free(c);
    }
}

/* CFG.7 */
Test(environment, gives_settings_to_handler_sets)
{
    write_file(
        "commandbus.cfg",
        "domains = { fx = { handlers = [\"fx\", \"card_fraud\", \"reporting\"]; }; }; handlers = { card_fraud = { model-file = \"a\"; }; fx = { desk = \"d\"; }; };");

    OWNED(config) c = load(.env = { "COMMANDBUS_HANDLERS_CARD_FRAUD_MODEL_FILE=b",
                                    "COMMANDBUS_HANDLERS_REPORTING_OUTPUT_FOLDER=/out" });

    cr_assert_eq(c->n_set_values, 3);
    cr_expect_str_eq(c->set_values[0].name, "card_fraud.model-file");
    cr_expect_str_eq(c->set_values[0].value, "b");
    cr_expect_str_eq(c->set_values[1].value, "d");
    cr_expect_str_eq(c->set_values[2].name, "reporting.output-folder");
    cr_expect_str_eq(c->set_values[2].value, "/out");
    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

Test(environment, makes_a_domain_that_no_file_has)
{
    OWNED(config) c = load(.env = { "COMMANDBUS_DOMAINS_CARD_FRAUD_CONCURRENT_MESSAGES=3",
                                    "COMMANDBUS_DOMAINS_CARD_FRAUD_HANDLERS=cards,fraud" });
    const config_domain *d = domain_of(c, "card_fraud");

    cr_expect(d->enabled);
    cr_expect_eq(d->concurrent_messages, 3);
    cr_expect_eq(d->n_handlers, 2);
    cr_expect_str_eq(d->handlers[1], "fraud");
}

Test(environment, names_steps_and_processes_in_any_case)
{
    write_file("commandbus.cfg", STEPS "domains = { fx = { }; };");

    OWNED(config) c = load(.env = { "COMMANDBUS_COMMAND_STEPS_BOOKFX_TIMEOUT=5s",
                                    "COMMANDBUS_COMMAND_STEPS_bookFx_MAX_ATTEMPTS=1",
                                    "COMMANDBUS_PROCESSES_PAYMENTSTEP_DEADLINE_ACTION=FAIL" });

    cr_expect_eq(c->n_steps, 1);
    cr_expect_eq(step_of(c, "bookFx")->timeout, 5);
    cr_expect_eq(step_of(c, "bookFx")->max_attempts, 1);
    cr_expect_str_eq(c->processes[0].deadline_action, "FAIL");
}

Test(environment, prefers_the_longest_end)
{
    write_file("commandbus.cfg", STEPS "domains = { fx = { }; };");

    OWNED(config) c = load(.env = { "COMMANDBUS_COMMAND_STEPS_BOOKFX_WAIT_TIMEOUT=2h" });

    cr_expect_eq(step_of(c, "bookFx")->wait_timeout, 7200);
    cr_expect_eq(step_of(c, "bookFx")->timeout, 0);
}

Test(environment, warns_of_a_step_that_no_file_has)
{
    OWNED(config) c = load(.env = { "COMMANDBUS_DOMAINS_FX_ENABLED=true",
                                    "COMMANDBUS_COMMAND_STEPS_BOOKFX_TIMEOUT=5s" });

    cr_expect_eq(c->n_steps, 0);
    cr_expect_eq(warned.n, 1);
    cr_expect(strstr(warned.last, "BOOKFX"), "%s", warned.last);
}

Test(environment, warns_of_an_unknown_name_with_the_nearest)
{
    static const char *const typos[][2] = {
        { "COMMANDBUS_DOMAINS_FX_CONCURENT_MESSAGES=2",
          "COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES" },
        { "COMMANDBUS_HTTP_PROT=1", "COMMANDBUS_HTTP_PORT" },
        { "COMMANDBUS_FEATURE_HTTP_API=true", "COMMANDBUS_FEATURES_HTTP_API" },
        { "COMMANDBUS_DATABSE_URL=x", "COMMANDBUS_DATABASE_URL" },
    };

    for (size_t i = 0; i < sizeof typos / sizeof *typos; i++) {
        char expected[256];
        warned.n = 0;
        OWNED(config) c = load(.env = { "COMMANDBUS_DOMAINS_FX_ENABLED=true", typos[i][0] });
        snprintf(expected, sizeof expected, "did you mean %s?", typos[i][1]);
        cr_expect_eq(warned.n, 1, "%s", typos[i][0]);
        cr_expect(strstr(warned.last, expected), "%s", warned.last);
    }
}

Test(environment, is_silent_about_names_that_others_read)
{
    OWNED(config) c =
        load(.env = { "COMMANDBUS_DOMAINS_FX_ENABLED=true", "COMMANDBUS_URL=x",
                      "COMMANDBUS_TEST_URL=x", "COMMANDBUS_TEST_SEED=1",
                      "COMMANDBUS_PROFILE=", "COMMANDBUS_SETS_DIR=x", "PATH=y", "COMMANDBUSY=1" });

    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

/* Kubernetes puts the Services of a namespace into the environment of every pod. */
Test(environment, does_not_mistake_services_of_kubernetes_for_keys)
{
    OWNED(config) c =
        load(.env = { "COMMANDBUS_DOMAINS_FX_ENABLED=true",
                      "COMMANDBUS_HTTP_PORT=tcp://10.96.0.7:80",
                      "COMMANDBUS_HTTP_SERVICE_HOST=10.96.0.7", "COMMANDBUS_HTTP_SERVICE_PORT=80",
                      "COMMANDBUS_HTTP_PORT_80_TCP=tcp://10.96.0.7:80",
                      "COMMANDBUS_HTTP_PORT_80_TCP_PROTO=tcp" });

    cr_expect_eq(c->http_port, 9464);
    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

Test(environment, refuses_a_bad_value_by_its_name)
{
    refused("COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES: domains.fx.concurrent-messages is 0: it "
            "must be 1 to 10000",
            .env = { "COMMANDBUS_DOMAINS_FX_CONCURRENT_MESSAGES=0" });
    refused("COMMANDBUS_HTTP_PORT: http.port is empty", .env = { "COMMANDBUS_HTTP_PORT=" });
    refused("COMMANDBUS_DOMAINS_FX_ENABLED: domains.fx.enabled is maybe: it must be true or false",
            .env = { "COMMANDBUS_DOMAINS_FX_ENABLED=maybe" });
    refused("domains.a__b: use neither __", .env = { "COMMANDBUS_DOMAINS_A__B_ENABLED=true" });
}

Test(environment, refuses_two_names_of_one_key)
{
    refused("is said twice",
            .env = { "COMMANDBUS_DOMAINS_FX_PREFETCH=1", "COMMANDBUS_DOMAINS_fx_PREFETCH=2" });
}

/* DESIGN 5: a setting that nobody reads is a slip of the pen. */
Test(environment, warns_of_a_setting_for_a_set_that_no_domain_has)
{
    OWNED(config) c = load(.set = { "domains.fx.enabled=true", "domains.fx.handlers=fx,desk",
                                    "handlers.desk.name=London" });
    cr_expect_eq(warned.n, 0, "%s", warned.last);

    OWNED(config) slip = load(.set = { "domains.fx.enabled=true", "handlers.f.desk=London",
                                       "handlers.fx.desk=London" });
    cr_expect_eq(warned.n, 1, "%s", warned.last);
    cr_expect(strstr(warned.last, "handlers.f.desk"), "%s", warned.last);
    cr_expect_null(strstr(warned.last, "London"), "%s", warned.last);
}
