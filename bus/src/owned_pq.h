/* OWNED() for what libpq gives: a PGresult local is cleared when its block ends. */
#ifndef CB_OWNED_PQ_H
#define CB_OWNED_PQ_H

#include <commandbus/owned.h>
#include <libpq-fe.h>

DEFINE_OWNED(PGresult, PQclear)

#endif
