/* A state with dates, nested structs and lists: what the history holds, what comes back, what
 * operators set. STP.19. */
#include "stage.h"

typedef struct {
    char *city;
    cb_date since;
} address;

typedef struct {
    char *article;
    int64_t amount;
} line;

typedef struct {
    cb_date ordered;
    address ship_to;
    CB_LIST_OF(line) lines;
    bool go;
} purchase;

CB_FIELDS(address_fields, address, CB_FIELD(address, city, CB_TEXT),
          CB_FIELD(address, since, CB_DATE));
CB_FIELDS(line_fields, line, CB_FIELD(line, article, CB_TEXT), CB_FIELD(line, amount, CB_INT));
CB_FIELDS(purchase_fields, purchase, CB_FIELD(purchase, ordered, CB_DATE),
          CB_FIELD_STRUCT(purchase, ship_to, &address_fields),
          CB_FIELD_LIST_OF(purchase, lines, &line_fields, 3), CB_FIELD(purchase, go, CB_BOOL));

static cb_outcome move_away(cb_context *ctx, void *state)
{
    purchase *p = state;

    p->ship_to.since = (cb_date){ 2026, 2, 1 };
    return cb_text_set(&p->ship_to.city, "Ulm") ? CB_SUCCESS
                                                : cb_transient(ctx, "NO_MEMORY", "again");
}

static cb_outcome add_line(cb_context *ctx, void *state)
{
    purchase *p = state;
    line *l = cb_list_add(&purchase_fields, p, &p->lines);

    if (!l)
        return cb_permanent(ctx, "TOO_MANY_LINES", "no more than 3");
    l->amount = (int64_t)p->lines.n;
    return cb_text_set(&l->article, "A-1") ? CB_SUCCESS : cb_transient(ctx, "NO_MEMORY", "again");
}

static bool purchase_may_go(const void *state)
{
    return ((const purchase *)state)->go;
}

static bool take_purchase_go(void *state, json_object *payload)
{
    (void)payload;
    ((purchase *)state)->go = true;
    return true;
}

static cb_flow buy(cb_process *p, void *state)
{
    (void)state;
    CB_DO(cb_step(p, "move", move_away, .max_attempts = 2));
    CB_DO(cb_step(p, "add", add_line, .max_attempts = 2));
    CB_DO(cb_wait(p, "await", purchase_may_go, .timeout_ms = CB_HOURS(1)));
    CB_DO(cb_step(p, "again", add_line, .max_attempts = 2));
    return CB_DONE;
}

static const cb_response responses[] = { { "go", take_purchase_go } };
static const cb_process_type buy_type = { .name = "Buy",
                                          .domain = "payments",
                                          .state = &purchase_fields,
                                          .execute = buy,
                                          .responses = responses,
                                          .n_responses = 1 };
static const cb_process_type *const types[] = { &buy_type };

static const char first[] =
    "{\"ordered\": \"2026-01-31\", \"ship_to\": {\"city\": \"Bonn\", \"since\": \"2020-02-29\"}, "
    "\"lines\": [{\"article\": \"X\", \"amount\": 7}]}";

#define expect_patch(s, expected, id, name)                                                \
    expect_value(bus.conn, expected,                                                       \
                 "SELECT patch FROM commandbus.process_history WHERE process_id = $1 AND " \
                 "name = $2",                                                              \
                 (id).text, name)

/* STP.2, STP.4: after every crash the state is what the records say. */
Test(typed_state, a_record_holds_what_changed_and_replay_gives_the_same_state_after_any_crash)
{
    static const char whole[] =
        "{\"go\": true, \"lines\": [{\"amount\": 7, \"article\": \"X\"}, {\"amount\": 2, "
        "\"article\": \"A-1\"}, {\"amount\": 3, \"article\": \"A-1\"}], \"ordered\": "
        "\"2026-01-31\", \"ship_to\": {\"city\": \"Ulm\", \"since\": \"2026-02-01\"}}";

    for (int at = 0; at < 8; at++) {
        stage s = stage_open(types, 1, NULL, 0);
        cb_uuid id = stage_start(&s, "Buy", first);
        s.kit.crash_after = at;
        stage_go(&s);
        if (s.kit.crashed)
            stage_restart(&s);
        stage_go(&s);
        stage_respond(&s, id, "go", "{}");
        stage_go(&s);
        if (s.kit.crashed)
            stage_restart(&s);
        stage_go(&s);

        expect_status(&s, "COMPLETED", id);
        expect_value(bus.conn, whole, "SELECT state FROM commandbus.process WHERE process_id = $1",
                     id.text);
        expect_patch(&s, "{\"ship_to\": {\"city\": \"Ulm\", \"since\": \"2026-02-01\"}}", id,
                     "move");
        expect_patch(&s,
                     "{\"lines\": [{\"amount\": 7, \"article\": \"X\"}, "
                     "{\"amount\": 2, \"article\": \"A-1\"}]}",
                     id, "add");
        stage_close(&s);
    }
}

Test(typed_state, fields_of_a_nested_struct_that_the_code_does_not_know_survive) /* STP.14 */
{
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Buy", "{\"ship_to\": {\"city\": \"Bonn\", \"zip\": \"53111\"}}");

    stage_go(&s);

    expect_value(bus.conn, "{\"zip\": \"53111\", \"city\": \"Ulm\", \"since\": \"2026-02-01\"}",
                 "SELECT state -> 'ship_to' FROM commandbus.process WHERE process_id = $1",
                 id.text);
    stage_close(&s);
}

Test(typed_state, a_full_list_and_a_state_of_the_wrong_shape_are_reported_by_their_path)
{
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid wrong = stage_start(&s, "Buy", "{\"lines\": [{}, {\"amount\": \"two\"}]}");
    cb_uuid many = stage_start(&s, "Buy", "{\"lines\": [{}, {}, {}, {}]}");
    cb_uuid full = stage_start(&s, "Buy", "{\"lines\": [{}, {}, {}]}");

    stage_go(&s);

    expect_value(
        bus.conn, "t",
        "SELECT error_message LIKE '%''lines[1].amount'' of purchase must be a 64-bit integer%' "
        "FROM commandbus.process WHERE process_id = $1",
        wrong.text);
    expect_value(
        bus.conn, "t",
        "SELECT error_message LIKE '%''lines'' of purchase has 4 items, but may have at most 3' "
        "FROM commandbus.process WHERE process_id = $1",
        many.text);
    expect_status(&s, "WAITING_FOR_TSQ PERMANENT_FAILURE", full);
    stage_close(&s);
}

static void complete_by_hand(stage *s, cb_uuid id, const char *overrides)
{
    cb_error e;

    cr_assert(cb_process_complete(bus.db, id.text, "ann", "as agreed", overrides, &e), "%s",
              e.message);
    stage_go(s);
}

/* STP.12 */
Test(typed_state, an_operator_sets_a_member_of_a_nested_struct_and_what_is_misspelt_is_refused)
{
    stage s = stage_open(types, 1, NULL, 0);
    cb_uuid id = stage_start(&s, "Buy", "{\"lines\": [{}, {}, {}], \"ship_to\": {\"zip\": \"1\"}}");

    stage_go(&s);
    complete_by_hand(&s, id, "{\"ship_to\": {\"ctiy\": \"Jena\"}}");
    expect_value(bus.conn, "t",
                 "SELECT error_message LIKE '%ship_to has no field ''ctiy''%' "
                 "FROM commandbus.process WHERE process_id = $1",
                 id.text);
    complete_by_hand(&s, id, "{\"lines\": [{\"artcle\": \"B\"}]}");
    expect_value(bus.conn, "WAITING_FOR_TSQ",
                 "SELECT status FROM commandbus.process WHERE process_id = $1", id.text);
    complete_by_hand(&s, id,
                     "{\"ship_to\": {\"city\": \"Jena\"}, \"lines\": [{\"article\": \"B\"}]}");

    expect_status(&s, "COMPLETED", id);
    expect_value(bus.conn,
                 "{\"zip\": \"1\", \"city\": \"Jena\", \"since\": \"2026-02-01\"}/"
                 "[{\"amount\": 0, \"article\": \"B\"}]",
                 "SELECT (state -> 'ship_to')::text || '/' || (state -> 'lines')::text "
                 "FROM commandbus.process WHERE process_id = $1",
                 id.text);
    stage_close(&s);
}
