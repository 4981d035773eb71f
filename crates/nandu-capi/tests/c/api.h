/* The test of the interface, on a host and in an emulated Cortex-M. */
#ifndef API_H
#define API_H

#include "ram_chip.h"

/* Two chips, as the platform has memory for them. */
void test_store(ram_chip *first, ram_chip *second);
void test_store_misuse(ram_chip *chip);
void test_files(ram_chip *first, ram_chip *second);
void test_files_misuse(ram_chip *chip);

#endif
