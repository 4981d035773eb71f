/*
 * nandu on a port of Dhara: who has written the functions dhara_nand_... for a chip opens a volume of nandu with them as they are.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     const nandu_chip chip = nandu_dhara_chip(&nand);
 *     int error = nandu_store_open(&store, &chip, NULL, memory, sizeof memory);
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

/* What an error of a port is to nandu: `failed` where the chip says that the operation failed. */
static inline int nandu_dhara_error_(dhara_error_t error, int failed) {
    switch (error) {
    case DHARA_E_BAD_BLOCK:
        return failed;
    case DHARA_E_ECC:
        return NANDU_ERR_UNCORRECTABLE;
    default:
        return NANDU_ERR_BUS;
    }
}

static inline int nandu_dhara_read_(void *context, uint32_t page, uint32_t column, void *data, uint32_t size) {
    const struct dhara_nand *nand = (const struct dhara_nand *)context;
    dhara_error_t error = DHARA_E_NONE;
    if (dhara_nand_read(nand, page, column, size, (uint8_t *)data, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_UNCORRECTABLE);
}

/* The geometry says that a page takes one program, so column is 0 and size a page. */
static inline int nandu_dhara_program_(void *context, uint32_t page, uint32_t column, const void *data, uint32_t size) {
    const struct dhara_nand *nand = (const struct dhara_nand *)context;
    dhara_error_t error = DHARA_E_NONE;
    if (column != 0 || size != (uint32_t)1 << nand->log2_page_size)
        return NANDU_ERR_NOT_ALIGNED;
    if (dhara_nand_prog(nand, page, (const uint8_t *)data, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_PROGRAM_FAILED);
}

static inline int nandu_dhara_erase_(void *context, uint32_t block, int mode) {
    dhara_error_t error = DHARA_E_NONE;
    (void)mode;
    if (dhara_nand_erase((const struct dhara_nand *)context, block, &error) == 0)
        return 0;
    return nandu_dhara_error_(error, NANDU_ERR_ERASE_FAILED);
}

static inline int nandu_dhara_is_bad_(void *context, uint32_t block) {
    return dhara_nand_is_bad((const struct dhara_nand *)context, block) != 0;
}

static inline int nandu_dhara_mark_bad_(void *context, uint32_t block) {
    dhara_nand_mark_bad((const struct dhara_nand *)context, block);
    return 0;
}

/* A chip as nandu drives it. The struct of the port has to stay as long as a volume is open. */
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
    return chip;
}

#ifdef __cplusplus
}
#endif

#endif
