/* A gate that handlers stop at until the test lets them pass, and that counts who comes by: what a
 * test sees of a worker from inside its handlers. */
#ifndef TEST_SUPPORT_GATE_H
#define TEST_SUPPORT_GATE_H

#include <stdbool.h>
#include <stddef.h>

/* Open at first. Closing it holds up everybody who comes from then on. */
void gate_close(void);
/* Lets everybody pass. */
void gate_open(void);
/* Lets n more pass and stays closed. */
void gate_let(size_t n);

/* For handlers: waits until it may pass. */
void gate_pass(void);

size_t gate_entered(void); /* came by so far */
size_t gate_left(void);    /* passed so far */
size_t gate_waiting(void); /* between the two, now */
size_t gate_most(void);    /* the most that ever were */

#endif
