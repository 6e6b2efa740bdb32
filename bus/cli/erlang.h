/* How long work waits for a free slot: Poisson arrivals, exponential times, one queue (M/M/c). */
#ifndef CLI_ERLANG_H
#define CLI_ERLANG_H

/* The chance that an arrival has to wait (Erlang C). `load` is arrivals a second times seconds a call.
 * 1 when the load is all that the slots can do, or more. */
double erlang_c(int slots, double load);

/* The mean wait in seconds. Only for a load below the slots: above it there is no mean. */
double erlang_mean_wait(int slots, double rate, double seconds);

/* What only one in `one_in` arrivals waits longer than, in seconds; 0 when fewer wait at all. Only for a
 * load below the slots. */
double erlang_rare_wait(int slots, double rate, double seconds, double one_in);

#endif
