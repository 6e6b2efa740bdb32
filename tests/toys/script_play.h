/* Random scripts on a stage: a crowd of processes whose workers and handlers die anywhere or come
 * back late, whose clock jumps, whose responses and operators come at any moment; then everything
 * is brought to its end and compared with the model. */
#ifndef TEST_TOYS_SCRIPT_PLAY_H
#define TEST_TOYS_SCRIPT_PLAY_H

/* Plays one crowd after the other for so many seconds (COMMANDBUS_TEST_SECONDS goes before). Fails
 * the test with the seed of the crowd, which replays it as COMMANDBUS_TEST_SEED. */
void script_play(double seconds);

#endif
