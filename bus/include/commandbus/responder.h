/* Who may bring responses to processes. Operators and workers may bring any; every other login
 * those that were given to a role of its. Only members of commandbus_owner give and take rights. */
#ifndef COMMANDBUS_RESPONDER_H
#define COMMANDBUS_RESPONDER_H

#include <commandbus/db.h>
#include <commandbus/query.h>

/* Lets a role, such as a login, bring these responses ("L1,L2", or "*" for each) to processes of
 * these types ("PaymentStep,PaymentManager"): all of them or none. *changed: so many rights are
 * new. */
CB_API bool cb_responder_allow(cb_db *db, const char *role, const char *process_types,
                               const char *responses, long *changed, cb_error *e) CB_NODISCARD;

/* Takes them back, as they were given: "*" is a right of its own. *changed: so many there were. */
CB_API bool cb_responder_forbid(cb_db *db, const char *role, const char *process_types,
                                const char *responses, long *changed, cb_error *e) CB_NODISCARD;

CB_API bool cb_responder_list(cb_db *db, cb_rows **ret, cb_error *e) CB_NODISCARD;

#endif
