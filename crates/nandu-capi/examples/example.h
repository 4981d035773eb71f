/* What an example is: a function that is given a chip. `host.c` gives it a simulated one, a firmware its own. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <nandu.h>

/* Returns 0 or an error. Called again after a power cut. */
int example(const nandu_chip *chip);

/* Prints a line. */
void say(const char *text, long number);

#endif
