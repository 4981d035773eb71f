/* A port of Dhara to a simulated chip, as a user has one: it knows nothing of nandu but this chip. */
#include "dhara_port.h"

#include <stddef.h>

static const nandu_chip *chip_of(const struct dhara_nand *n) {
    return &((const struct dhara_port *)(const void *)((const char *)n - offsetof(struct dhara_port, nand)))->chip;
}

/* As ports say it: -1, and why. */
static int outcome(int answer, dhara_error_t *err) {
    if (answer >= 0)
        return 0;
    if (err != NULL) {
        *err = DHARA_E_NONE;
        if (answer == NANDU_ERR_UNCORRECTABLE)
            *err = DHARA_E_ECC;
        if (answer == NANDU_ERR_PROGRAM_FAILED || answer == NANDU_ERR_ERASE_FAILED)
            *err = DHARA_E_BAD_BLOCK;
    }
    return -1;
}

int dhara_nand_is_bad(const struct dhara_nand *n, dhara_block_t b) {
    const nandu_chip *chip = chip_of(n);
    return chip->is_bad(chip->context, b) != 0;
}

void dhara_nand_mark_bad(const struct dhara_nand *n, dhara_block_t b) {
    const nandu_chip *chip = chip_of(n);
    chip->mark_bad(chip->context, b);
}

int dhara_nand_erase(const struct dhara_nand *n, dhara_block_t b, dhara_error_t *err) {
    const nandu_chip *chip = chip_of(n);
    return outcome(chip->erase(chip->context, b, NANDU_MODE_SLC), err);
}

int dhara_nand_prog(const struct dhara_nand *n, dhara_page_t p, const uint8_t *data, dhara_error_t *err) {
    const nandu_chip *chip = chip_of(n);
    return outcome(chip->program(chip->context, p, 0, data, chip->geometry.page_size), err);
}

int dhara_nand_read(const struct dhara_nand *n, dhara_page_t p, size_t offset, size_t length, uint8_t *data, dhara_error_t *err) {
    const nandu_chip *chip = chip_of(n);
    return outcome(chip->read(chip->context, p, (uint32_t)offset, data, (uint32_t)length), err);
}
