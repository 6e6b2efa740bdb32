/* The table of routes. {} stands for one part of a path. */
#include "routes.h"

#include <string.h>

#include "control.h"
#include "endpoints.h"

static const struct {
    const char *method, *pattern;
    const endpoint *endpoint;                    /* of an API */
    answer (*control)(simulator *s, request *r); /* or of the simulator itself */
} routes[] = {
    { "POST", "/fx/bookings", &endpoint_fx_book, NULL },
    { "POST", "/fx/bookings/{}/release", &endpoint_fx_release, NULL },
    { "POST", "/risk/bookings", &endpoint_risk_book, NULL },
    { "POST", "/risk/bookings/{}/release", &endpoint_risk_release, NULL },
    { "POST", "/gateway/payments", &endpoint_gateway_pay, NULL },
    { "GET", "/behaviour", NULL, control_behaviour_all },
    { "PUT", "/behaviour/{}", NULL, control_behaviour_set },
    { "GET", "/stats", NULL, control_stats },
    { "POST", "/stats/reset", NULL, control_stats_reset },
    { "GET", "/bookings/{}", NULL, control_bookings },
};

/* What {} stands for goes to `id`. */
static bool fits(const char *pattern, const char *path, char id[LONGEST_ID + 1])
{
    const char *hole = strstr(pattern, "{}");
    size_t before = hole ? (size_t)(hole - pattern) : 0;

    if (!hole)
        return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, before) != 0)
        return false;
    size_t n = strcspn(path + before, "/");
    if (n == 0 || n > LONGEST_ID || strcmp(hole + 2, path + before + n) != 0)
        return false;
    memcpy(id, path + before, n);
    id[n] = '\0';
    return true;
}

answer routes_answer(simulator *s, const char *method, const char *path, request *r)
{
    bool is_known = false;

    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!fits(routes[i].pattern, path, r->id))
            continue;
        is_known = true;
        if (strcmp(routes[i].method, method) == 0)
            return routes[i].endpoint ? call(s, routes[i].endpoint, r) : routes[i].control(s, r);
    }
    return is_known ? answer_refusal(405, "METHOD_NOT_ALLOWED", "not with this method")
                    : answer_refusal(404, "NOT_FOUND", "there is no such path");
}
