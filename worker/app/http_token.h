/* The token that opens guarded routes. */
#ifndef APP_HTTP_TOKEN_H
#define APP_HTTP_TOKEN_H

#include <commandbus/error.h>
#include <stdbool.h>

/* What the file of that key holds without the blanks around it. The caller frees *ret. CB_MISUSE when it cannot be
 * read, is empty, or could not be a token. */
bool http_token_read(const char *key, const char *file, char **ret, cb_error *e) CB_NODISCARD;

/* Whether an Authorization header (which may be NULL) brings it. How long this takes does not tell how
 * much of a guess was right. */
bool http_token_matches(const char *token, const char *authorization);

#endif
