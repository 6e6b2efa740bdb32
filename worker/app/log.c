/* Events as lines. The table below is the vocabulary. */
#include "log.h"

void log_event(const cb_event *event, void *sink)
{
    (void)event;
    (void)sink;
}
