/*
 * A simulated NAND chip, and power cuts, for tests of firmware on a host.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The chip is strict: what no real chip would take (a page programmed twice, pages out of order, a bad block erased) stops the program with
 * the last operations of that block. It counts every operation exactly, and loses power at any of them. It lies on the heap and is not
 * shared between threads.
 */
#ifndef NANDU_SIM_H
#define NANDU_SIM_H

#include "nandu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nandu_sim nandu_sim;

/* What a power cut leaves of the operation it hits. One that does not fit the operation is replaced by one that does. */
#define NANDU_TEAR_BEFORE 0           /* nothing happened */
#define NANDU_TEAR_PREFIX 1           /* program: the first bytes are there, and error correction notices nothing */
#define NANDU_TEAR_PREFIX_LOST 2      /* program: the same, and reads cannot be corrected */
#define NANDU_TEAR_SOME_BITS 3        /* program: about half of the bits */
#define NANDU_TEAR_SOME_BITS_LOST 4
#define NANDU_TEAR_MOST_BITS 5        /* program: all but a few bits */
#define NANDU_TEAR_MOST_BITS_LOST 6
#define NANDU_TEAR_UNSTABLE 7         /* program: all bits are there, and get worse */
#define NANDU_TEAR_LOOKS_ERASED 8     /* program: the page reads as erased and is not */
#define NANDU_TEAR_COMPLETE 9         /* it finished, but nobody was told */
#define NANDU_TEAR_EARLIER_PARTS 10   /* partial program: parts programmed before are lost with it */
#define NANDU_TEAR_PAIR_LOST 11       /* program of an MSB page: it and its partner cannot be corrected */
#define NANDU_TEAR_PAIR_GARBLED 12
#define NANDU_TEAR_PAIR_UNSTABLE 13
#define NANDU_TEAR_HALF_ERASED 14     /* erase: each page holds what it held, something else, or ones */
#define NANDU_TEAR_WEAKLY_ERASED 15   /* erase: the block reads as erased, and what is programmed there gets worse */
#define NANDU_TEAR_FADING_CONTENT 16  /* erase: the block reads as before, and gets worse */
#define NANDU_TEAR_ANY (-1)           /* one that fits the operation, by the seed */

/* A chip of a preset, such as "w25n01gv", "mt29f4g01", "mlc-4k" or "tiny" (`nandu chip list` has all). With other blocks than the preset if
 * block_count is not 0. Null if there is no such preset. The same seed gives the same chip. */
nandu_sim *nandu_sim_new(const char *preset, uint32_t block_count, uint64_t seed);

/* A copy in the same state; null of null. */
nandu_sim *nandu_sim_clone(nandu_sim *sim);

/* Frees a chip; no volume on it is open any more. sim may be null. */
void nandu_sim_free(nandu_sim *sim);

/* Fills in geometry, context and callbacks, with which a volume is opened. */
int nandu_sim_chip(nandu_sim *sim, nandu_chip *chip);

/* Operations that the chip was asked for since it got power; the number of the next one. */
uint64_t nandu_sim_operation_count(nandu_sim *sim);

/* The power goes at the operation with this number, and leaves this tear. Until power comes back, callbacks return NANDU_ERR_GONE. */
int nandu_sim_cut_at(nandu_sim *sim, uint64_t operation, int tear);

/* The tear that the last cut left, or NANDU_ERR_NOT_FOUND if there was none. */
int nandu_sim_last_tear(nandu_sim *sim);

/* Withdraws cuts that have not come yet. */
int nandu_sim_clear_cuts(nandu_sim *sim);

/* 1 if the chip has no power, else 0. */
int nandu_sim_is_off(nandu_sim *sim);

/* Takes the power away between two operations. */
int nandu_sim_power_off(nandu_sim *sim);

/* Gives it again: what the cut left is there, and a volume has to be opened again. */
int nandu_sim_power_on(nandu_sim *sim);

/* Time passes, in which unstable bits get worse. */
int nandu_sim_advance(nandu_sim *sim, uint64_t nanoseconds);

/* A block that the factory marked as bad; before the chip is used. */
int nandu_sim_mark_factory_bad(nandu_sim *sim, uint32_t block);

/* What the chip was asked to do, and how long it took. */
typedef struct nandu_sim_counters {
    uint64_t reads;
    uint64_t programs;
    uint64_t erases;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t busy_ns;
} nandu_sim_counters;

/* Since the chip was made. */
int nandu_sim_count(nandu_sim *sim, nandu_sim_counters *counters);

/*
 * The power-cut driver: it runs a workload again and again on copies of a chip, cuts the power in the middle of an operation, gives
 * power again, and checks twice, the second time after unstable bits have gone bad.
 *
 * noted is memory of the test's, noted_size zeroed bytes at multiples of 8, in which the workload notes whatever was acknowledged to it.
 */
typedef struct nandu_power_cut {
    void *context;
    size_t noted_size;
    /* Uses the chip. Returns 0, or what a call said; after a cut it returns too. An error without a cut is a failure. */
    int (*workload)(void *context, const nandu_chip *chip, void *noted);
    /* Opens what is there after a cut, and may be cut itself. Null: the check does it. */
    int (*recover)(void *context, const nandu_chip *chip);
    /* Returns 0 if everything that was noted is there. *seen is compared between both checks: what is seen once has to stay. */
    int (*check)(void *context, const nandu_chip *chip, const void *noted, uint64_t *seen);
} nandu_power_cut;

/* What the driver did. */
typedef struct nandu_power_cut_summary {
    uint64_t cases;      /* chips that were checked after at least one cut */
    uint64_t operations; /* operations of the workload without a cut */
    uint64_t cuts;
} nandu_power_cut_summary;

/* Cuts each operation of the workload with each tear that the chip permits there. Returns 0, or 1 if a case failed: then its seed and its
 * cuts stand on stderr, and with NANDU_SEED and NANDU_CUTS in the environment that case alone is run. summary may be null. */
int nandu_power_cut_every(nandu_sim *sim, const nandu_power_cut *test, nandu_power_cut_summary *summary);

/* Tries so many chains of one to four cuts: the first in the workload, the others in the recoveries after it. */
int nandu_power_cut_random(nandu_sim *sim, const nandu_power_cut *test, uint64_t seed, uint64_t count, nandu_power_cut_summary *summary);

#ifdef __cplusplus
}
#endif

#endif
