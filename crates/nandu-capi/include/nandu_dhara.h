/*
 * nandu on a port of Dhara: who has written the functions dhara_nand_... for a chip opens a volume of nandu with them, if they say what failed.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     const nandu_chip chip = nandu_dhara_chip(&nand);
 *     int error = nandu_store_open(&store, &chip, NULL, memory, sizeof memory);
 *
 * Dhara never looks at *err after a read, so that some ports leave it alone, and a page that a power cut tore looks like a failure of the bus: no
 * volume opens then. Ask the port (nandu_dhara_ask), and choose one of two constructors, or have the port set DHARA_E_ECC.
 *
 * Needs Dhara's headers, dhara/nand.h above all, and none of its code. A volume of nandu and a map of Dhara cannot share blocks. What a
 * port does not say: corrected bits, so that pages that decay are moved only when they are read often; the rated erases and bad
 * blocks, which may be changed in the geometry before the volume is formatted.
 */
#ifndef NANDU_DHARA_H
#define NANDU_DHARA_H

#include <dhara/nand.h>

#include "nandu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a port that leaves *err alone says of a page that it cannot read: nandu_dhara_ask tells. */
typedef enum {
    NANDU_DHARA_SAYS = 0,  /* It sets DHARA_E_ECC: take nandu_dhara_chip. */
    NANDU_DHARA_SILENT = 1 /* It leaves *err alone: take nandu_dhara_chip_silent, unless it does so for failures of the bus. */
} nandu_dhara_answer;

/* What an error of a port is to nandu: `failed` where the chip says that the operation failed, `silent` where nobody says why. */
static inline int nandu_dhara_error_(dhara_error_t error, int failed, int silent) {
    switch (error) {
    case DHARA_E_NONE:
        return silent;
    case DHARA_E_BAD_BLOCK:
    case DHARA_E_RECOVER: /* Some ports say so of a failed program. */
        return failed;
    case DHARA_E_ECC:
        return NANDU_ERR_UNCORRECTABLE;
    default:
        return NANDU_ERR_BUS;
    }
}

static inline int nandu_dhara_read_as_(void *context, uint32_t page, uint32_t column, void *data, uint32_t size, int silent) {
    const struct dhara_nand *nand = (const struct dhara_nand *)context;
    dhara_error_t error = DHARA_E_NONE;
    if (dhara_nand_read(nand, page, column, size, (uint8_t *)data, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_UNCORRECTABLE, silent);
}

static inline int nandu_dhara_read_(void *context, uint32_t page, uint32_t column, void *data, uint32_t size) {
    return nandu_dhara_read_as_(context, page, column, data, size, NANDU_ERR_BUS);
}

static inline int nandu_dhara_read_silent_(void *context, uint32_t page, uint32_t column, void *data, uint32_t size) {
    return nandu_dhara_read_as_(context, page, column, data, size, NANDU_ERR_UNCORRECTABLE);
}

/* The geometry says that a page takes one program, so column is 0 and size a page. */
static inline int nandu_dhara_program_(void *context, uint32_t page, uint32_t column, const void *data, uint32_t size) {
    const struct dhara_nand *nand = (const struct dhara_nand *)context;
    dhara_error_t error = DHARA_E_NONE;
    if (column != 0 || size != (uint32_t)1 << nand->log2_page_size)
        return NANDU_ERR_NOT_ALIGNED;
    if (dhara_nand_prog(nand, page, (const uint8_t *)data, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_PROGRAM_FAILED, NANDU_ERR_BUS);
}

static inline int nandu_dhara_erase_(void *context, uint32_t block, int mode) {
    dhara_error_t error = DHARA_E_NONE;
    (void)mode;
    if (dhara_nand_erase((const struct dhara_nand *)context, block, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_ERASE_FAILED, NANDU_ERR_BUS);
}

static inline int nandu_dhara_is_bad_(void *context, uint32_t block) {
    return dhara_nand_is_bad((const struct dhara_nand *)context, block) != 0;
}

static inline int nandu_dhara_mark_bad_(void *context, uint32_t block) {
    dhara_nand_mark_bad((const struct dhara_nand *)context, block);
    return 0;
}

/* A chip as nandu drives it, of a port that sets *err where it returns -1: to DHARA_E_ECC for a page that cannot be corrected, to
 * DHARA_E_BAD_BLOCK for a program or erase that the chip refused. A failure of which it says nothing is taken for one of the bus. The struct of the
 * port has to stay as long as a volume is open. */
static inline nandu_chip nandu_dhara_chip(const struct dhara_nand *nand) {
    nandu_chip chip;
    const nandu_geometry shape = {
        (uint32_t)1 << nand->log2_page_size, /* page_size */
        0, 0,                                /* no spare bytes, no tag */
        (uint32_t)1 << nand->log2_ppb,       /* pages_per_block */
        (uint32_t)nand->num_blocks,          /* block_count */
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,     /* whole pages, everything else as it is for zeros */
    };
    chip.geometry = shape;
    chip.context = (void *)nand;
    chip.read = nandu_dhara_read_;
    chip.program = nandu_dhara_program_;
    chip.program_tagged = NULL;
    chip.erase = nandu_dhara_erase_;
    chip.is_bad = nandu_dhara_is_bad_;
    chip.mark_bad = nandu_dhara_mark_bad_;
    chip.wait = NULL;
    chip.lock = NULL;
    chip.unlock = NULL;
    return chip;
}

/* The same of a port that says nothing of a page that cannot be corrected: a read that fails without a word is taken for that. Only of a port
 * whose bus cannot fail, or that sets *err when it does. Else an outage passes for pages that are lost: an open in it says NOT_FORMATTED or
 * CORRUPT, or goes back to an older state and makes that durable, so that what was acknowledged is lost for good. In a test, outages of three reads did
 * that from 5 of the 40 reads of an open on. With nandu_dhara_chip the same outages are BUS, and nothing is lost; but there a page that a
 * cut tore is BUS as well. So a port that is silent of both has to be changed: DHARA_E_ECC where the chip cannot correct a page. */
static inline nandu_chip nandu_dhara_chip_silent(const struct dhara_nand *nand) {
    nandu_chip chip = nandu_dhara_chip(nand);
    chip.read = nandu_dhara_read_silent_;
    return chip;
}

/* Asks a port what it says of a page that cannot be corrected: makes one in the first page of a block that holds nothing, and has it erased
 * afterwards. `page` has a page of bytes. Once, when a port is brought up: it programs a page twice, which no volume does. Returns a
 * nandu_dhara_answer, or what failed: NANDU_ERR_CORRUPT where the page read without an error, so that this chip or port does not tell, and
 * NANDU_ERR_BUS where the port has another word for it; then read its source. */
static inline int nandu_dhara_ask(const struct dhara_nand *nand, uint32_t block, uint8_t *page) {
    const uint32_t size = (uint32_t)1 << nand->log2_page_size;
    const uint32_t first = block << nand->log2_ppb;
    dhara_error_t error = DHARA_E_NONE, ignored = DHARA_E_NONE;
    int failed, round;
    uint32_t at;
    if (dhara_nand_erase(nand, block, &error) != 0)
        return NANDU_ERR_ERASE_FAILED;
    for (round = 0; round < 2; round++) {
        for (at = 0; at < size; at++)
            page[at] = (uint8_t)((at * 167 + 13) >> (round * 3));
        if (dhara_nand_prog(nand, first, page, &error) != 0 && round == 0)
            return NANDU_ERR_PROGRAM_FAILED;
    }
    error = DHARA_E_NONE;
    failed = dhara_nand_read(nand, first, 0, size, page, &error) != 0;
    if (dhara_nand_erase(nand, block, &ignored) != 0)
        return NANDU_ERR_ERASE_FAILED;
    if (!failed)
        return NANDU_ERR_CORRUPT;
    if (error == DHARA_E_ECC)
        return NANDU_DHARA_SAYS;
    return error == DHARA_E_NONE ? NANDU_DHARA_SILENT : NANDU_ERR_BUS;
}

#ifdef __cplusplus
}
#endif

#endif
