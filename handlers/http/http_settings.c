/* Checking where calls go, before the first one. */
#include "http_settings.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONGEST_BASE = 500
};

static const struct {
    const char *name;
    size_t at;
} keys[] = {
    { "url", offsetof(http_settings, url) },
    { "ca-file", offsetof(http_settings, ca_file) },
};

static bool take(const char *set, const cb_setting *setting, http_settings *to, cb_error *e)
{
    for (size_t i = 0; i < CB_COUNT(keys); i++) {
        if (strcmp(keys[i].name, setting->name) == 0) {
            char **value = (char **)(void *)((char *)to + keys[i].at);
            free(*value);
            return (*value = strdup(setting->value)) || cb_fail(e, CB_MEMORY, "out of memory");
        }
    }
    return cb_fail(e, CB_MISUSE, "unknown setting handlers.%s.%.60s: there are url and ca-file",
                   set, setting->name);
}

/* The part, or "" when the URL has none; the caller frees it. */
static char *part(CURLU *url, CURLUPart which)
{
    char *text = NULL;

    return curl_url_get(url, which, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool is_url(const char *text)
{
    CURLU *url = curl_url();
    bool is_one = url && strlen(text) <= LONGEST_BASE &&
                  curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK;
    char *scheme = is_one ? part(url, CURLUPART_SCHEME) : NULL;
    char *query = is_one ? part(url, CURLUPART_QUERY) : NULL;
    char *fragment = is_one ? part(url, CURLUPART_FRAGMENT) : NULL;

    is_one = scheme && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) && !query &&
             !fragment;
    curl_free(scheme);
    curl_free(query);
    curl_free(fragment);
    curl_url_cleanup(url);
    return is_one;
}

/* The URL itself is not in a message: it may hold a password. */
static bool check(const char *set, http_settings *s, cb_error *e)
{
    if (!s->url)
        return cb_fail(e, CB_MISUSE, "say where the API is: handlers.%s.url", set);
    if (!is_url(s->url))
        return cb_fail(e, CB_MISUSE,
                       "handlers.%s.url must be such as https://%s.example.com/v1, without ? and #",
                       set, set);
    if (s->ca_file && access(s->ca_file, R_OK) != 0)
        return cb_fail(e, CB_MISUSE, "handlers.%s.ca-file, %.150s, cannot be read", set,
                       s->ca_file);
    for (size_t n = strlen(s->url); s->url[n - 1] == '/'; n--)
        s->url[n - 1] = '\0';
    return true;
}

bool http_settings_take(const char *set, const cb_module_config *config, http_settings *ret,
                        cb_error *e)
{
    bool taken = true;

    *ret = (http_settings){ NULL, NULL };
    for (size_t i = 0; taken && i < config->n_settings; i++)
        taken = take(set, &config->settings[i], ret, e);
    if (taken && check(set, ret, e))
        return true;
    http_settings_done(ret);
    return false;
}

void http_settings_done(http_settings *s)
{
    free(s->url);
    free(s->ca_file);
    *s = (http_settings){ NULL, NULL };
}
