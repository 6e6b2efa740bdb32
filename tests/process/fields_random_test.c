/* Whatever a struct holds: what is written is what is read, also after a stay in the database, and
 * a difference turns the one struct into the other. */
#include "database.h"
#include "fields_support.h"
#include "seed.h"
#include "utf8.h"

static unsigned seed;

static uint64_t random_bits(void)
{
    uint64_t bits = 0;

    for (int i = 0; i < 8; i++)
        bits = bits << 8 | test_random(&seed, 256);
    return bits;
}

/* Any code point but NUL and surrogates, as UTF-8. */
static char *append_character(char *at)
{
    unsigned c = test_random(&seed, 4) ? 1 + test_random(&seed, 126) : test_random(&seed, 0x110000);

    if (c == 0 || (c >= 0xD800 && c <= 0xDFFF))
        c = '"';
    return at + utf8_encode(c, at);
}

static void random_text(char text[84])
{
    char *end = text;

    for (unsigned n = test_random(&seed, 20); n > 0; n--)
        end = append_character(end);
    *end = '\0';
}

static double random_double(void)
{
    uint64_t bits = random_bits();
    double number;

    memcpy(&number, &bits, sizeof number);
    if (test_random(&seed, 2))
        number = (double)(int64_t)(bits >> 20) / 1e4;
    return isfinite(number) && number != 0 ? number : 1e300; /* jsonb has no -0 */
}

static json_object *random_json(int depth)
{
    char text[84];
    json_object *value;

    switch (test_random(&seed, depth > 0 ? 7 : 5)) {
    case 0:
        return NULL;
    case 1:
        return json_object_new_boolean(test_random(&seed, 2));
    case 2:
        return json_object_new_int64((int64_t)random_bits());
    case 3: /* from 1e15 on jsonb gives an integer back: the same number, another type */
        return json_object_new_double((double)(int64_t)(random_bits() >> 16) / 1024);
    case 4:
        random_text(text);
        return json_object_new_string(text);
    case 5:
        value = json_object_new_array();
        for (unsigned n = test_random(&seed, 4); n > 0; n--)
            json_object_array_add(value, random_json(depth - 1));
        return value;
    default:
        value = json_object_new_object();
        for (unsigned n = test_random(&seed, 4); n > 0; n--) {
            random_text(text);
            json_object_object_add(value, text, random_json(depth - 1));
        }
        return value;
    }
}

static void randomise_numbers(trade *t)
{
    static const char currencies[][4] = { "EUR", "JPY", "KWD", "CLF" };
    const int64_t first = -62135596800000, last = 253402300799999;

    if (test_random(&seed, 2))
        t->retries = (int)random_bits();
    if (test_random(&seed, 2))
        t->count = (int64_t)(random_bits() >> test_random(&seed, 64));
    if (test_random(&seed, 2))
        t->score = random_double();
    if (test_random(&seed, 2))
        t->booked_at = first + (int64_t)(random_bits() % (uint64_t)(last - first + 1));
    if (test_random(&seed, 2)) {
        t->amount.minor = (int64_t)(random_bits() >> test_random(&seed, 64));
        memcpy(t->amount.currency, currencies[test_random(&seed, 4)], 4);
    }
    if (test_random(&seed, 2))
        t->rate = (cb_decimal){ (int64_t)random_bits(), (int)test_random(&seed, 19) };
}

static cb_date random_date(void)
{
    return (cb_date){ 1 + (int)test_random(&seed, 9999), 1 + (int)test_random(&seed, 12),
                      1 + (int)test_random(&seed, 28) };
}

static void randomise_leg(leg *l)
{
    char text[84];

    random_text(text);
    if (test_random(&seed, 2))
        cr_assert(cb_text_set(&l->bank, test_random(&seed, 5) ? text : NULL));
    if (test_random(&seed, 2))
        l->value_date = test_random(&seed, 5) ? random_date() : (cb_date){ 0 };
    if (test_random(&seed, 2)) {
        int64_t *number = cb_list_add(&leg_fields, l, &l->numbers);
        if (number)
            *number = (int64_t)random_bits();
        else
            cb_list_clear(&leg_fields, l, &l->numbers);
    }
    if (l->numbers.n && test_random(&seed, 4) == 0)
        l->numbers.items[test_random(&seed, (unsigned)l->numbers.n)] ^= 1;
}

/* Adds, removes and changes items. */
static void randomise_lists(trade *t)
{
    char text[84], **tag = NULL;
    leg *l = NULL;
    int *status = NULL;

    random_text(text);
    if (test_random(&seed, 2) && (tag = cb_list_add(&trade_fields, t, &t->tags)))
        cr_assert(cb_text_set(tag, test_random(&seed, 5) ? text : NULL));
    if (test_random(&seed, 2) && (l = cb_list_add(&trade_fields, t, &t->legs)))
        randomise_leg(l);
    if (test_random(&seed, 2) && (status = cb_list_add(&trade_fields, t, &t->history)))
        *status = (int)test_random(&seed, 3);
    cb_list_remove(&trade_fields, t, &t->tags, test_random(&seed, 12));
    cb_list_remove(&trade_fields, t, &t->legs, test_random(&seed, 12));
    cb_list_remove(&trade_fields, t, &t->history, test_random(&seed, 6));
    if (t->legs.n && test_random(&seed, 3) == 0)
        randomise_leg(&t->legs.items[0]);
}

/* Changes about half of the fields. */
static void randomise(trade *t)
{
    char text[84];

    randomise_numbers(t);
    random_text(text);
    if (test_random(&seed, 2))
        cr_assert(cb_text_set(&t->account, test_random(&seed, 5) ? text : NULL));
    if (test_random(&seed, 2))
        t->approved = !t->approved;
    if (test_random(&seed, 2))
        t->id = test_random(&seed, 5) ? cb_uuid_new() : (cb_uuid){ "" };
    if (test_random(&seed, 2))
        t->risk = (int)test_random(&seed, 3);
    if (test_random(&seed, 2))
        t->due = random_date();
    if (test_random(&seed, 2))
        randomise_leg(&t->first);
    randomise_lists(t);
    if (test_random(&seed, 2)) {
        json_object_put(t->extra);
        t->extra = random_json(4);
    }
}

/* The object as it comes out of a jsonb column; or, without a connection, of its text. */
static json_object *stored(PGconn *conn, json_object *object)
{
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
    char *back = conn ? test_value(conn, "SELECT $1::jsonb::text", text, NULL) : strdup(text);
    json_object *ret = parsed(back);

    free(back);
    return ret;
}

static void expect_round_trip(PGconn *conn)
{
    OWNED(trade) a = trade_new();
    OWNED(trade) b = trade_new();
    OWNED(json_object) patch = NULL;
    cb_error e;

    randomise(a);
    OWNED(json_object) object = cb_fields_write(&trade_fields, a);
    OWNED(json_object) whole = stored(conn, object);
    randomise(b);
    expect_ok(cb_fields_read(&trade_fields, b, whole, NULL, &e), e);
    expect_same(a, b);

    randomise(b);
    cr_assert(cb_fields_diff(&trade_fields, a, b, &patch));
    if (patch) {
        OWNED(json_object) part = stored(conn, patch);
        expect_ok(cb_fields_patch(&trade_fields, a, part, &e), e);
    }
    expect_same(a, b);

    randomise(a);
    cr_assert(cb_fields_copy(&trade_fields, a, b));
    expect_same(a, b);
}

Test(fields_random, reading_and_patching_undo_writing_and_comparing)
{
    seed = test_seed();
    for (int i = 0; i < 20000; i++)
        expect_round_trip(NULL);
}

/* DESIGN 4: replay sees what was seen then. */
Test(fields_random, a_stay_in_the_database_changes_nothing)
{
    char *conninfo = test_database_create();
    PGconn *conn = test_pq_open(conninfo);

    seed = test_seed();
    for (int i = 0; i < 1000; i++)
        expect_round_trip(conn);

    PQfinish(conn);
    test_database_drop(conninfo);
}

/* Documents that nobody promised anything about: refused or read, never worse. */
Test(fields_random, any_document_is_read_or_refused_by_name)
{
    static const char *const keys[] = { "debitAccount", "approved", "retries",  "count",
                                        "score",        "id",       "bookedAt", "risk",
                                        "extra",        "amount",   "rate",     "due",
                                        "first",        "tags",     "legs",     "history" };
    int read = 0, refused = 0;

    seed = test_seed();
    for (int i = 0; i < 50000; i++) {
        OWNED(trade) t = trade_new();
        OWNED(json_object) object = json_object_new_object();
        cb_error e = { 0 };
        for (unsigned n = 1 + test_random(&seed, 3); n > 0; n--)
            json_object_object_add(object, keys[test_random(&seed, CB_COUNT(keys))],
                                   random_json(2));
        if (cb_fields_read(&trade_fields, t, object, NULL, &e)) {
            read++;
            expect_ok(cb_fields_valid(&trade_fields, t, &e), e);
        } else {
            refused++;
            cr_assert(strstr(e.message, "field '"), "%s", e.message);
        }
    }
    cr_assert_gt(read, 1000);
    cr_assert_gt(refused, 1000);
}
