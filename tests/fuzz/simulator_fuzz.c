/* What the simulator is told: its command line, a behaviour, a request. Refused, or within its
 * limits.
 *
 *     words of the command line, one a line, up to an empty line
 *     a behaviour, one line of JSON
 *     the body of a request, one line of JSON */
#include "fuzz.h"

#include <json-c/json.h>

#include "behaviour.h"
#include "request.h"
#include "simulator_options.h"

static void check_options(char **words)
{
    options o;
    cb_error e = { 0 };

    if (!options_parse(words, &o, &e)) {
        fuzz_refused(&e, CB_MISUSE);
        return;
    }
    FUZZ_CHECK(o.port >= 0 && o.port <= 65535 && o.bind, "port %lld", (long long)o.port);
    FUZZ_CHECK(o.simulator.hold_ms >= 1000 && o.simulator.hold_ms <= 3600000, "hold");
    for (int i = 0; i < APIS; i++)
        FUZZ_CHECK(o.simulator.capacity[i] >= 1 && o.simulator.capacity[i] <= 100000, "capacity");
}

static void check_behaviour(const char *text)
{
    behaviour b = { 0 }, again = { 0 };
    json_object *patch = json_tokener_parse(text);
    cb_error e = { 0 };

    if (!behaviour_patch(&b, patch, &e)) {
        fuzz_refused(&e, CB_INVALID_DATA);
    } else {
        dice d = { .seed = 1, .key = text };
        int64_t delay = behaviour_delay_ms(&b, &d);
        FUZZ_CHECK(delay >= b.min_ms && delay <= b.max_ms, "%lld ms", (long long)delay);
        FUZZ_CHECK(behaviour_roll(&b, &d) <= ROLL_OK, "no roll");
        json_object *said = behaviour_json(&b);
        FUZZ_CHECK(behaviour_patch(&again, said, &e), "%s: %s", e.message,
                   json_object_to_json_string(said));
        json_object_put(said);
    }
    json_object_put(patch);
}

static void check_request(const char *body)
{
    request r = { .body = body, .body_size = strlen(body) };
    answer refused = { 0 };
    cb_money money = { 0 };
    cb_uuid id;

    if (request_read(&r, &refused)) {
        FUZZ_CHECK(!request_money(&r, "amount", "currency", &money, &refused) || money.minor > 0,
                   "no amount");
        answer_done(&refused);
        FUZZ_CHECK(!request_uuid(&r, "processId", &id, &refused) || strlen(id.text) == 36, "no id");
        answer_done(&refused);
        (void)request_day(&r, "valueDate", &refused);
        (void)request_hash(&r);
    }
    answer_done(&refused);
    json_object_put(r.json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_SPLIT(in, data, size);
    char *words[FUZZ_LINES + 1] = { NULL };
    int n = 0;

    for (; n < in.n && *in.line[n]; n++)
        words[n] = in.line[n];
    check_options(words);
    check_behaviour(fuzz_line(&in, n + 1));
    check_request(fuzz_line(&in, n + 2));
    return 0;
}
