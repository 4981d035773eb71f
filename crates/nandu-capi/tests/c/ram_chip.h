/* A chip in memory: it holds what is programmed, refuses what no chip takes, and loses power. */
#ifndef RAM_CHIP_H
#define RAM_CHIP_H

#include "nandu.h"

#define RAM_PAGE_SIZE 2048u
#define RAM_SPARE_SIZE 64u
#define RAM_TAG_SIZE 16u
#define RAM_PAGES_PER_BLOCK 64u
#define RAM_BLOCK_COUNT 40u

typedef struct ram_chip {
    uint8_t pages[RAM_BLOCK_COUNT * RAM_PAGES_PER_BLOCK][RAM_PAGE_SIZE + RAM_SPARE_SIZE];
    uint16_t next[RAM_BLOCK_COUNT]; /* the first page of each block that may be programmed */
    uint32_t programs;
    uint32_t waits;
    uint32_t cut_in;       /* programs and erases until the power goes, counted from 1; 0: it stays */
    int is_shared;         /* its volumes have a lock */
    int refuses;           /* what the lock answers */
    uint32_t held, taken;  /* how often the lock is held, and was taken */
    int is_off;
    int is_begun;          /* an operation that nobody waited for */
    nandu_store *intruder; /* where not null: a store that read calls, which it must not */
    int intrusion;         /* what it was told */
} ram_chip;

/* A new chip, erased, with a bad block. */
void ram_chip_make(ram_chip *ram);

/* How nandu drives it. */
nandu_chip ram_chip_of(ram_chip *ram);

#endif
