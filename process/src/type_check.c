/* Whether a process type and its manager are sound: found when a program starts, not when a process
 * runs. */
#include <string.h>

#include "name_rules.h"
#include "types.h"

const char manager_creation[] = "create_state";

/* Whether each of `needs` (words, or NULL) is one of the fields. */
static bool type_has_needs(const cb_fields *fields, const char *needs)
{
    for (const char *at = needs; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " "), i = 0;
        while (fields && i < fields->n_fields &&
               (strlen(fields->fields[i].name) != n || strncmp(fields->fields[i].name, at, n) != 0))
            i++;
        if (!fields || i == fields->n_fields)
            return false;
        at += n;
    }
    return true;
}

/* ---- managers ---- */

typedef struct {
    const cb_process_type *type;
    const cb_process_manager *manager;
    const cb_manager_step *step;
    int number;
} place;

static bool wrong(const place *at, cb_error *e, const char *what)
{
    return cb_fail(e, CB_MISUSE, "step %d, '%s', of process type '%s' %s", at->number,
                   at->step->name ? at->step->name : "", at->type->name, what);
}

static bool is_text(const char *text)
{
    return text && *text;
}

static bool check_name(const place *at, cb_error *e)
{
    if (name_rule_type(at->step->name))
        return cb_fail(e, CB_MISUSE,
                       "step %d, '%.100s', of process type '%s' has an invalid name; %s",
                       at->number, at->step->name ? at->step->name : "", at->type->name,
                       name_rule_type(at->step->name));
    if (strcmp(at->step->name, manager_creation) == 0)
        return wrong(at, e, "has a name that is reserved for the record of create_state");
    for (int i = 1; i < at->number; i++) {
        if (strcmp(at->manager->steps[i].name, at->step->name) == 0)
            return wrong(at, e, "is defined twice");
    }
    return true;
}

static bool check_kind(const place *at, cb_error *e)
{
    const cb_manager_step *s = at->step;

    if (!s->command_type == !s->response || (s->command_type && !*s->command_type) ||
        (s->response && !*s->response))
        return wrong(at, e, "needs either command_type or response");
    if (s->response && (s->domain || s->request || s->max_attempts || s->timeout_seconds))
        return wrong(at, e, "waits for a response, but has settings of a command");
    if (s->timeout_ms < 0 || s->timeout_seconds < 0 || s->max_attempts < 0)
        return wrong(at, e, "has a negative number");
    if (s->domain && !is_text(s->domain))
        return wrong(at, e, "has an empty domain");
    return true;
}

static bool check_fields(const place *at, cb_error *e)
{
    const cb_manager_step *s = at->step;

    if ((s->request && !cb_fields_check(s->request, e)) ||
        (s->reply && !cb_fields_check(s->reply, e)))
        return cb_fail_while(e, "checking step '%s' of process type '%s'", s->name, at->type->name);
    if (s->request && !at->manager->build_command)
        return wrong(at, e, "has a request, but the manager has no build_command");
    if (s->reply && !at->manager->update_state)
        return wrong(at, e, "has a reply, but the manager has no update_state");
    return true;
}

/* A response is read when it arrives: before anybody knows which of two steps it is for. */
static bool check_response(const place *at, cb_error *e)
{
    if (at->step->needs &&
        (!at->step->response || !type_has_needs(at->step->reply, at->step->needs)))
        return wrong(at, e, "needs a field that its response does not have");
    for (int i = 1; at->step->response && i < at->number; i++) {
        const cb_manager_step *other = &at->manager->steps[i];
        if (other->response && strcmp(other->response, at->step->response) == 0 &&
            other->reply != at->step->reply)
            return wrong(at, e, "waits for a response that another step takes as something else");
    }
    return true;
}

static bool check_compensation(const place *at, cb_error *e)
{
    int by = at->step->compensation;

    if (by == 0)
        return true;
    if (by < 0 || (size_t)by >= at->manager->n_steps || by == at->number)
        return wrong(at, e, "is compensated by a step that does not exist");
    const cb_manager_step *undo = &at->manager->steps[by];
    if (!at->step->command_type)
        return wrong(at, e, "only waits: there is nothing to compensate");
    if (!is_text(undo->command_type) || undo->compensation)
        return wrong(at, e,
                     "is compensated by a step that sends no command or is compensated itself");
    return true;
}

static bool check_step(const place *at, cb_error *e)
{
    return check_name(at, e) && check_kind(at, e) && check_fields(at, e) && check_response(at, e) &&
           check_compensation(at, e);
}

static bool manager_check(const cb_process_type *type, cb_error *e)
{
    const cb_process_manager *m = type->manager;

    bool goes_on = m->next_step || m->next_step_by;

    if (!m->first_step || !goes_on || !m->steps || m->n_steps < 2)
        return cb_fail(e, CB_MISUSE, "the manager of process type '%s' lacks its %s", type->name,
                       !m->first_step ? "first_step"
                       : !goes_on     ? "next_step"
                                      : "steps, which begin at row 1");
    if (m->steps[0].name || m->steps[0].command_type || m->steps[0].response)
        return cb_fail(e, CB_MISUSE,
                       "row 0 of the steps of process type '%s' is not empty: 0 means none",
                       type->name);
    if (type->n_responses > 0)
        return cb_fail(e, CB_MISUSE,
                       "process type '%s' has a manager: its responses are those that steps wait "
                       "for",
                       type->name);
    for (size_t i = 1; i < m->n_steps; i++) {
        if (!check_step(&(place){ type, m, &m->steps[i], (int)i }, e))
            return false;
    }
    return true;
}

/* ---- types ---- */

static bool check_responses(const cb_process_type *type, cb_error *e)
{
    if (type->n_responses > 0 && !type->responses)
        return cb_fail(e, CB_MISUSE, "process type '%s' lacks its responses", type->name);
    for (size_t i = 0; i < type->n_responses; i++) {
        const cb_response *r = &type->responses[i];
        if (!r->name || !*r->name || !r->take)
            return cb_fail(e, CB_MISUSE, "response %zu of process type '%s' lacks %s", i + 1,
                           type->name, r->take ? "a name" : "a function");
        for (size_t k = 0; k < i; k++) {
            if (strcmp(type->responses[k].name, r->name) == 0)
                return cb_fail(e, CB_MISUSE, "process type '%s' has response '%s' twice",
                               type->name, r->name);
        }
    }
    return true;
}

static bool check_payloads(const cb_process_type *type, cb_error *e)
{
    for (size_t i = 0; i < type->n_payloads; i++) {
        const cb_response_payload *p = &type->payloads[i];
        if (!p->response || !type_response(type, p->response) || !p->fields)
            return cb_fail(e, CB_MISUSE, "payload %zu of process type '%s' lacks its %s", i + 1,
                           type->name, p->fields ? "response" : "fields");
        if (!cb_fields_check(p->fields, e))
            return cb_fail_while(e, "checking response '%s' of process type '%s'", p->response,
                                 type->name);
        if (!type_has_needs(p->fields, p->needs))
            return cb_fail(e, CB_MISUSE,
                           "response '%s' of process type '%s' needs a field that it does not have",
                           p->response, type->name);
    }
    return true;
}

static bool check_redact(const cb_process_type *type, cb_error *e)
{
    for (size_t i = 0; type->redact && type->redact[i]; i++) {
        if (!*type->redact[i])
            return cb_fail(e, CB_MISUSE, "process type '%s' redacts a field without a name",
                           type->name);
    }
    return true;
}

bool type_check(const cb_process_type *type, cb_error *e)
{
    const char *rule = name_rule_type(type ? type->name : NULL);

    if (rule)
        return cb_fail(e, CB_MISUSE, "invalid name '%.100s' of a process type; %s",
                       type && type->name ? type->name : "", rule);
    if (!type->domain || !type->state || (!type->execute && !type->manager))
        return cb_fail(e, CB_MISUSE, "process type '%s' lacks its %s", type->name,
                       !type->domain  ? "domain"
                       : !type->state ? "state (a field table)"
                                      : "execute function or manager");
    if (type->execute && type->manager)
        return cb_fail(e, CB_MISUSE,
                       "process type '%s' has both an execute function and a manager: choose one",
                       type->name);
    if (type->version < 0)
        return cb_fail(e, CB_MISUSE, "process type '%s' has version %d: must be 1 or more",
                       type->name, type->version);
    if (!cb_fields_check(type->state, e))
        return cb_fail_while(e, "checking the state of process type '%s'", type->name);
    return check_redact(type, e) && check_responses(type, e) && check_payloads(type, e) &&
           (!type->manager || manager_check(type, e));
}
