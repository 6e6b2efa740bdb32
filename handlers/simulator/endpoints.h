/* The endpoints of the APIs: tables, each in the file of its own API. */
#ifndef SIMULATOR_ENDPOINTS_H
#define SIMULATOR_ENDPOINTS_H

#include "call.h"

extern const endpoint endpoint_fx_book, endpoint_fx_release, endpoint_risk_book,
    endpoint_risk_release, endpoint_gateway_pay;

#endif
