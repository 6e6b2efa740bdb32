/* Calls to an API that answers with whatever the test says: a server of one thread. SIM.11. */
#include "apis.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* With a Content-Length, or without a body the head as it is; "" hangs up instead. */
typedef struct {
    const char *head, *body;
} reply;

/* Answers each request with the same. */
typedef struct {
    int listener, port, connections, requests;
    reply says;
    char last[4096]; /* the last request */
    pthread_t thread;
} api;

/* The body too, whose length the headers say. */
static bool read_request(int fd, char *to, size_t room)
{
    size_t size = 0;
    ssize_t n;

    while ((n = recv(fd, to + size, room - size - 1, 0)) > 0) {
        to[size += (size_t)n] = '\0';
        const char *end = strstr(to, "\r\n\r\n"), *length = strcasestr(to, "content-length:");
        if (end && length && strlen(end + 4) >= strtoul(length + 15, NULL, 10))
            return true;
    }
    return false;
}

static bool send_reply(int fd, const reply *r)
{
    FILE *out = *r->head ? fdopen(dup(fd), "w") : NULL;

    if (!out)
        return false;
    fputs(r->head, out);
    if (r->body)
        fprintf(out, "Content-Length: %zu\r\n\r\n%s", strlen(r->body), r->body);
    return fclose(out) == 0;
}

static void *serve_api(void *arg)
{
    api *a = arg;
    int fd;

    while ((fd = accept(a->listener, NULL, NULL)) >= 0) {
        a->connections++;
        while (read_request(fd, a->last, sizeof a->last)) {
            a->requests++;
            if (!send_reply(fd, &a->says))
                break;
        }
        close(fd);
    }
    return NULL;
}

static void start_api(api *a, reply says)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    char url[64];

    signal(SIGPIPE, SIG_IGN); /* a caller who has read enough */
    *a = (api){ .listener = socket(AF_INET, SOCK_STREAM, 0), .says = says };
    cr_assert(bind(a->listener, (struct sockaddr *)&address, size) == 0 &&
              listen(a->listener, 8) == 0 &&
              getsockname(a->listener, (struct sockaddr *)&address, &size) == 0);
    a->port = ntohs(address.sin_port);
    cr_assert_eq(pthread_create(&a->thread, NULL, serve_api, a), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", a->port);
    apis_open(url);
}

static void stop_api(api *a)
{
    apis_close(); /* and with it all connections */
    shutdown(a->listener, SHUT_RDWR);
    pthread_join(a->thread, NULL);
    close(a->listener);
}

static const char data[] = "{\"amount\": \"1\", \"fromCurrency\": \"EUR\", \"toCurrency\": "
                           "\"USD\", \"valueDate\": \"2099-01-01\"}";

#define ANSWER(status, headers, body)                \
    {                                                \
        "HTTP/1.1 " status " Text\r\n" headers, body \
    }
#define CONTRACT(credit) \
    "{\"contractId\":\"C\",\"reference\":\"R\",\"rate\":\"2.0\",\"creditAmount\":\"" credit "\"}"

#define WITH(member)                                                                               \
    "{\"contractId\":\"C\",\"reference\":\"R\",\"rate\":\"2.0\",\"creditAmount\":\"2.00\"," member \
    "}"

/* SIM.2: 429, 5xx and no answer transient, declines business, other 4xx permanent, and nothing is
 * believed unseen. */
Test(http, answers_become_outcomes)
{
    static const struct {
        reply says;
        const char *outcome;
        double retry_seconds;
    } cases[] = {
        { ANSWER("201", "", CONTRACT("2.00")), "SUCCESS", 0 },
        { ANSWER("201", "", CONTRACT("2.001")), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("201", "", CONTRACT("-2.00")), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("201", "", "{}"), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("201", "", "[]"), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("200", "", "hello"), "PERMANENT RESPONSE_INVALID", 0 },
        /* What json-c would read as something else than was sent: found by fuzz_answer. */
        { ANSWER("201", "", WITH("\"n\":99999999999999999999")), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("201", "", WITH("\"n\":NaN")), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("201", "", WITH("\"n\":\"\\ud800\"")), "PERMANENT RESPONSE_INVALID", 0 },
        { ANSWER("400", "", ""), "PERMANENT HTTP_400", 0 },
        { ANSWER("401", "", ""), "PERMANENT HTTP_401", 0 },
        { ANSWER("404", "", "{\"code\":\"GONE\"}"), "PERMANENT GONE", 0 },
        { ANSWER("404", "", "{\"code\":\"a\\nb c\"}"), "PERMANENT HTTP_404", 0 },
        { ANSWER("422", "", "{\"code\":\"NOT\"}"), "BUSINESS_RULE NOT", 0 },
        { ANSWER("408", "", ""), "TRANSIENT HTTP_408", 0 },
        { ANSWER("429", "Retry-After: 7\r\n", ""), "TRANSIENT HTTP_429", 7 },
        { ANSWER("503", "Retry-After: 9\r\n", ""), "TRANSIENT HTTP_503", 9 },
        { ANSWER("503", "Retry-After: 99999999\r\n", ""), "TRANSIENT HTTP_503", 3600 },
        { ANSWER("500", "", ""), "TRANSIENT HTTP_500", 0 },
        { ANSWER("302", "Location: http://127.0.0.1:1/\r\n", ""), "PERMANENT HTTP_302", 0 },
        { { "", NULL }, "TRANSIENT CALL_FAILED", 0 },
        { { "no HTTP at all\r\n\r\n", NULL }, "TRANSIENT CALL_FAILED", 0 },
    };
    api a;

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        start_api(&a, cases[i].says);
        api_run run = api_do_once("BookFx", data);
        stop_api(&a);
        cr_expect_str_eq(run.outcome, cases[i].outcome, "%s: %s %s", cases[i].says.head,
                         run.outcome, run.message);
        cr_expect_eq(run.retry_seconds, cases[i].retry_seconds, "%s: %g", cases[i].says.head,
                     run.retry_seconds);
    }
}

static const char risk_data[] = "{\"amount\": \"1\", \"currency\": \"EUR\", \"debitAccount\": "
                                "\"A\", \"creditAccount\": \"B\"}";

/* What is booked must be what can be released: anything else is for a person, while it is fresh. */
Test(http, a_booking_that_no_release_could_name_is_not_taken_over)
{
    static const char *const ids[] = {
        "a/b",      "a b",
        "",         "..",
        "R?x=1",    "R\u00e9",
        "R\\u0000", "0123456789012345678901234567890123456789012345678901234567890123x",
    };
    char contract[300], decision[300];
    api a;

    for (size_t i = 0; i < CB_COUNT(ids); i++) {
        snprintf(contract, sizeof contract,
                 "{\"contractId\":\"%s\",\"reference\":\"R\",\"rate\":\"2.0\",\"creditAmount\":"
                 "\"2.00\"}",
                 ids[i]);
        snprintf(decision, sizeof decision,
                 "{\"reference\":\"%s\",\"status\":\"APPROVED\",\"score\":1}", ids[i]);
        start_api(&a, (reply){ "HTTP/1.1 201 Created\r\n", contract });
        cr_expect_str_eq(api_do_once("BookFx", data).outcome, "PERMANENT RESPONSE_INVALID", "%s",
                         ids[i]);
        stop_api(&a);
        start_api(&a, (reply){ "HTTP/1.1 201 Created\r\n", decision });
        cr_expect_str_eq(api_do_once("BookRisk", risk_data).outcome, "PERMANENT RESPONSE_INVALID",
                         "%s", ids[i]);
        stop_api(&a);
    }
}

/* Nothing may be left behind: a system that does not know what it has booked is believed only if it
 * had declined it. */
Test(http, only_what_was_declined_may_be_unknown_when_it_is_released)
{
    static const struct {
        reply says;
        const char *data, *outcome;
    } cases[] = {
        { ANSWER("404", "", "{\"code\":\"UNKNOWN\"}"),
          "{\"reference\": \"R\", \"status\": \"DECLINED\"}", "SUCCESS" },
        { ANSWER("410", "", ""), "{\"reference\": \"R\", \"status\": \"DECLINED\"}", "SUCCESS" },
        { ANSWER("200", "", "{}"), "{\"reference\": \"R\", \"status\": \"DECLINED\"}", "SUCCESS" },
        { ANSWER("400", "", ""), "{\"reference\": \"R\", \"status\": \"DECLINED\"}",
          "PERMANENT HTTP_400" },
        { ANSWER("503", "", ""), "{\"reference\": \"R\", \"status\": \"DECLINED\"}",
          "TRANSIENT HTTP_503" },
        { { "", NULL },
          "{\"reference\": \"R\", \"status\": \"DECLINED\"}",
          "TRANSIENT CALL_FAILED" },
        { ANSWER("404", "", ""), "{\"reference\": \"R\", \"status\": \"APPROVED\"}",
          "PERMANENT HTTP_404" },
        { ANSWER("404", "", ""), "{\"reference\": \"R\", \"status\": \"PENDING\"}",
          "PERMANENT HTTP_404" },
        { ANSWER("404", "", ""), "{\"reference\": \"R\", \"status\": 3}", "PERMANENT HTTP_404" },
        { ANSWER("404", "", ""), "{\"reference\": \"R\"}", "PERMANENT HTTP_404" },
        { ANSWER("422", "", ""), "{\"reference\": \"R\"}", "BUSINESS_RULE HTTP_422" },
        { { "HTTP/1.1 204 No Content\r\n\r\n", NULL }, "{\"reference\": \"R\"}", "SUCCESS" },
        { ANSWER("200", "", "<html>log in</html>"), "{\"reference\": \"R\"}",
          "PERMANENT RESPONSE_INVALID" },
    };
    api a;

    for (size_t i = 0; i < CB_COUNT(cases); i++) {
        start_api(&a, cases[i].says);
        api_run run = api_do_once("ReleaseRisk", cases[i].data);
        stop_api(&a);
        cr_expect_str_eq(run.outcome, cases[i].outcome, "%s, %s: %s", cases[i].says.head,
                         cases[i].data, run.outcome);
        cr_expect_eq(a.requests, 1);
    }
}

Test(http, an_answer_of_more_than_a_mebibyte_is_not_read)
{
    char *large = calloc(1, 3000001);
    api a;
    memset(large, ' ', 3000000);
    start_api(&a, (reply){ "HTTP/1.1 200 OK\r\n", large });

    api_run run = api_do_once("BookFx", data);

    stop_api(&a);
    free(large);
    cr_expect_str_eq(run.outcome, "PERMANENT RESPONSE_INVALID", "%s", run.message);
}

Test(http, calls_one_after_the_other_share_a_connection)
{
    api a;
    start_api(&a, (reply)ANSWER("201", "", CONTRACT("2.00")));

    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(api_do_once("BookFx", data).outcome, "SUCCESS");

    stop_api(&a);
    cr_expect_eq(a.requests, 5);
    cr_expect_eq(a.connections, 1);
}

Test(http, a_request_carries_the_key_and_exact_amounts)
{
    api a;
    cb_command c = api_command("BookFx", data);
    char key[80];
    start_api(&a, (reply)ANSWER("201", "", CONTRACT("2.00")));

    api_do(&c, NULL, NULL);

    stop_api(&a);
    snprintf(key, sizeof key, "Idempotency-Key: %s\r\n", c.command_id.text);
    cr_expect(strstr(a.last, key), "%s", a.last);
    cr_expect(strstr(a.last, "POST /fx/bookings HTTP/1.1\r\n"), "%s", a.last);
    cr_expect(strstr(a.last, "\"amount\":\"1\""), "%s", a.last);
}
