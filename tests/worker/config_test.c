/* What is loaded: defaults, their order with files, environment and --set, and what follows. */
#include "config_support.h"

TestSuite(config, .init = folder_open, .fini = folder_close);

#define FX "domains = { fx = {}; };"

Test(config, has_the_defaults_of_the_contract)
{
    OWNED(config) c = load(.set = { "domains.fx.enabled=true" });
    const config_domain *fx = domain_of(c, "fx");

    cr_expect_str_eq(c->database_url, "postgresql:///commandbus");
    cr_expect_null(c->listen_url);
    cr_expect(c->command_handlers && c->process_execution && c->reply_processing && !c->http_api);
    cr_expect_eq(c->shutdown_timeout, 30);
    cr_expect_eq(c->kill_grace, 30);
    cr_expect_eq(c->unknown_type_grace, 600);
    cr_expect_eq(c->reply_grace, 60);
    cr_expect_str_eq(c->http_bind, "127.0.0.1");
    cr_expect_eq(c->http_port, 9464);
    cr_expect_null(c->http_token_file);
    cr_expect_eq(c->log_level, CB_LEVEL_INFO);
    cr_expect_eq(c->log_format, LOG_LOGFMT);
    cr_expect_eq(c->payload_limit, 1024 * 1024);
    cr_expect_eq(c->keep_commands, 30 * 86400);
    cr_expect_eq(c->keep_processes, 30 * 86400);
    cr_expect_str_eq(c->profile, "");

    cr_expect(fx->enabled && fx->use_notify && !fx->fleet_limit_is_set);
    cr_expect_eq(fx->concurrent_messages, 5);
    cr_expect_eq(fx->concurrent_processes, 5);
    cr_expect_eq(fx->fleet_limit, 0);
    cr_expect_eq(fx->prefetch, 0);
    cr_expect_eq(fx->visibility_timeout, 30);
    cr_expect_eq(fx->poll_interval, 1);
    cr_expect_eq(fx->handler_timeout, 30);
    cr_expect_eq(fx->max_attempts, 3);
    cr_expect_eq(fx->n_retry_backoff, 3);
    cr_expect(fx->retry_backoff[0] == 10 && fx->retry_backoff[1] == 60 &&
              fx->retry_backoff[2] == 300);
    cr_expect_eq(fx->n_handlers, 1);
    cr_expect_str_eq(fx->handlers[0], "fx");
}

Test(config, names_a_worker_by_host_and_pid)
{
    OWNED(config) c = load(.set = { "domains.fx.enabled=true" });
    char pid[32];

    snprintf(pid, sizeof pid, "-%ld", (long)getpid());
    cr_expect(strlen(c->worker_name) > strlen(pid) && strstr(c->worker_name, pid), "%s",
              c->worker_name);
}

Test(config, looks_for_handler_sets_beside_the_program)
{
    OWNED(config) c = load(.set = { "domains.fx.enabled=true" });

    cr_expect_eq(c->modules_dir[0], '/');
    cr_expect(strstr(c->modules_dir, "commandbus/handlers"), "%s", c->modules_dir);
    cr_expect_null(strstr(c->modules_dir, ".."), "%s", c->modules_dir);
}

Test(config, takes_files_then_profiles_then_environment_then_set)
{
    write_file("commandbus.cfg", FX "http = { port = 1; }; log = { level = \"warn\"; };");
    write_file("a.cfg", "http = { port = 2; bind = \"10.0.0.1\"; };");
    write_file("b.cfg", "http = { port = 3; };");

    OWNED(config) common = load(.profiles = NULL);
    OWNED(config) one = load(.profiles = "a");
    OWNED(config) two = load(.profiles = "a, b");
    OWNED(config) turned = load(.profiles = "b,a");
    OWNED(config) env = load(.profiles = "a,b", .env = { "COMMANDBUS_HTTP_PORT=4" });
    OWNED(config) set = load(.profiles = "a,b", .env = { "COMMANDBUS_HTTP_PORT=4" },
                             .set = { "http.port=5", "http.port=6" });

    cr_expect_eq(common->http_port, 1);
    cr_expect_eq(one->http_port, 2);
    cr_expect_eq(two->http_port, 3);
    cr_expect_eq(turned->http_port, 2);
    cr_expect_eq(env->http_port, 4);
    cr_expect_eq(set->http_port, 6);
    /* What a later one does not say stays. */
    cr_expect_str_eq(set->http_bind, "10.0.0.1");
    cr_expect_eq(set->log_level, CB_LEVEL_WARN);
    cr_expect_str_eq(two->profile, "a,b");
}

Test(config, takes_profile_and_folder_from_the_environment)
{
    char dir[128];

    write_file("a.cfg", FX "http = { port = 2; };");
    snprintf(dir, sizeof dir, "COMMANDBUS_CONFIG_DIR=%s", folder);
    char *environment[] = { dir, "COMMANDBUS_PROFILE=a", NULL };
    config_request request = { .environment = environment };
    OWNED(config) c = NULL;
    cb_error e = { 0 };

    cr_assert(config_load(&request, remember_warning, NULL, &c, &e), "%s", e.message);

    cr_expect_eq(c->http_port, 2);
    cr_expect_str_eq(c->profile, "a");
    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

Test(config, needs_no_folder_when_nobody_named_one)
{
    const char *settings[] = { "domains.fx.enabled=true" };
    config_request request = { .settings = settings, .n_settings = 1 };
    OWNED(config) c = NULL;
    cb_error e = { 0 };

    cr_assert(config_load(&request, NULL, NULL, &c, &e), "%s", e.message);
}

Test(config, adds_up_a_domain_from_several_files)
{
    write_file("commandbus.cfg", "domains = { fx = { prefetch = 7; }; };");
    write_file("a.cfg", "domains = { fx = { max-attempts = 9; }; risk = { }; };");

    OWNED(config) c = load(.profiles = "a");

    cr_expect_eq(c->n_domains, 2);
    cr_expect_eq(domain_of(c, "fx")->prefetch, 7);
    cr_expect_eq(domain_of(c, "fx")->max_attempts, 9);
}

Test(config, reads_every_type_from_a_file)
{
    write_file(
        "a.cfg",
        "domains = { fx = { enabled = true; concurrent-messages = 0x10; fleet-limit = 0;\n"
        "  retry-backoff = (1, \"5m\", 2.5); handlers = [\"fx\", \"rates\"];\n"
        "  poll-interval = \"PT0.5S\"; }; };\n"
        "limits = { payload = \"2MiB\"; }; log = { level = \"debug\"; format = \"json\"; };\n"
        "retention = { audit = 0; commands = \"P7D\"; };\n"
        "processes = { Payment = { deadline-action = \"compensate\";\n"
        "                          reply-queue = \"payments__replies\"; }; };\n");

    OWNED(config) c = load(.profiles = "a");
    const config_domain *fx = domain_of(c, "fx");

    cr_expect_eq(fx->concurrent_messages, 16);
    cr_expect_eq(fx->n_retry_backoff, 3);
    cr_expect(fx->retry_backoff[0] == 1 && fx->retry_backoff[1] == 300 &&
              fx->retry_backoff[2] == 2.5);
    cr_expect_eq(fx->n_handlers, 2);
    cr_expect_str_eq(fx->handlers[1], "rates");
    cr_expect_eq(fx->poll_interval, 0.5);
    cr_expect(fx->fleet_limit_is_set);
    cr_expect_eq(c->payload_limit, 2 * 1024 * 1024);
    cr_expect_eq(c->log_level, CB_LEVEL_DEBUG);
    cr_expect_eq(c->log_format, LOG_JSON);
    cr_expect_eq(c->keep_audit, 0);
    cr_expect_eq(c->keep_commands, 7 * 86400);
    cr_expect_str_eq(c->processes[0].name, "Payment");
    cr_expect_str_eq(c->processes[0].deadline_action, "COMPENSATE");
    cr_expect_str_eq(c->processes[0].reply_queue, "payments__replies");
}

Test(config, reads_an_empty_list_of_backoffs)
{
    write_file("a.cfg", "domains = { fx = { retry-backoff = []; }; };");

    OWNED(config) c = load(.profiles = "a");

    cr_expect_eq(domain_of(c, "fx")->n_retry_backoff, 0);
}

/* CFG.4 */
Test(config, fits_the_timeout_that_nobody_said_into_the_lease)
{
    OWNED(config) shorter = load(.set = { "domains.fx.visibility-timeout=2500ms" });
    OWNED(config) longer = load(.set = { "domains.fx.visibility-timeout=2m" });
    OWNED(config) lease = load(.set = { "domains.fx.handler-timeout=90s" });

    cr_expect_eq(domain_of(shorter, "fx")->handler_timeout, 2);
    cr_expect_eq(domain_of(longer, "fx")->handler_timeout, 30);
    cr_expect_eq(domain_of(lease, "fx")->visibility_timeout, 90);
}

/* S3's WorkerSettings. */
Test(config, takes_what_a_domain_does_not_say_from_the_defaults_of_all)
{
    write_file("a.cfg",
               "worker = { defaults = { concurrent-messages = 7; use-notify = false; }; };\n"
               "domains = { fx = { }; risk = { concurrent-messages = 2; }; };");

    OWNED(config) c =
        load(.profiles = "a", .env = { "COMMANDBUS_WORKER_DEFAULTS_POLL_INTERVAL=5s" },
             .set = { "worker.defaults.visibility-timeout=2500ms",
                      "domains.risk.use-notify=true" });
    const config_domain *fx = domain_of(c, "fx"), *risk = domain_of(c, "risk");

    cr_expect_eq(fx->concurrent_messages, 7);
    cr_expect_eq(fx->concurrent_processes, 7);
    cr_expect_eq(fx->visibility_timeout, 2.5);
    cr_expect_eq(fx->handler_timeout, 2);
    cr_expect_eq(fx->poll_interval, 5);
    cr_expect(!fx->use_notify);
    cr_expect_eq(risk->concurrent_messages, 2);
    cr_expect_eq(risk->poll_interval, 5);
    cr_expect(risk->use_notify);
    cr_expect_eq(warned.n, 0, "%s", warned.last);
}

/* CONTRACT command-steps: the rest is the code's. */
Test(config, asks_for_no_more_of_a_step_than_what_is_said)
{
    OWNED(config) c =
        load(.set = { "domains.fx.enabled=true", "command-steps.bookFx.max-attempts=5" });

    cr_expect_eq(step_of(c, "bookFx")->max_attempts, 5);
    cr_expect_null(step_of(c, "bookFx")->domain);
    cr_expect_null(step_of(c, "bookFx")->command_type);
}

Test(config, runs_as_many_processes_as_messages_unless_told)
{
    OWNED(config) c =
        load(.set = { "domains.fx.concurrent-messages=7", "domains.risk.concurrent-processes=2" });

    cr_expect_eq(domain_of(c, "fx")->concurrent_processes, 7);
    cr_expect_eq(domain_of(c, "risk")->concurrent_processes, 2);
}

Test(config, warns_of_a_fleet_limit_below_the_slots_of_one_instance)
{
    OWNED(config) c = load(.set = { "domains.fx.fleet-limit=4" });

    cr_expect_eq(warned.n, 1);
    cr_expect(strstr(warned.last, "fleet-limit 4 is below concurrent-messages 5"), "%s",
              warned.last);
}

Test(config, reads_the_url_from_a_mounted_secret)
{
    char set[600], env[600];
    snprintf(set, sizeof set, "database.url-file=%s", write_file("url", "postgresql://bob@db/x\n"));
    snprintf(env, sizeof env, "COMMANDBUS_DATABASE_LISTEN_URL_FILE=%s",
             write_file("listen", "host=db\n"));
    write_file("commandbus.cfg", FX "database = { url = \"postgresql:///other\"; };");

    OWNED(config) c = load(.set = { set }, .env = { env });

    cr_expect_str_eq(c->database_url, "postgresql://bob@db/x");
    cr_expect_str_eq(c->listen_url, "host=db");
}

Test(config, takes_the_later_of_url_and_url_file)
{
    write_file("commandbus.cfg", FX "database = { url-file = \"not-there\"; };");

    OWNED(config) c = load(.env = { "COMMANDBUS_DATABASE_URL=postgresql:///later" });

    cr_expect_str_eq(c->database_url, "postgresql:///later");
}

Test(config, takes_an_empty_text_for_none)
{
    write_file("commandbus.cfg", FX "database = { listen-url = \"host=db\"; };");

    OWNED(config) c = load(.env = { "COMMANDBUS_DATABASE_LISTEN_URL=" });

    cr_expect_null(c->listen_url);
}
