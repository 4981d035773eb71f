/* A port of Dhara to a simulated chip, as a user has one: it knows nothing of nandu but this chip. */
#include "dhara_port.h"

#include <stddef.h>
#include <stdint.h>

static struct dhara_port *port_of(const struct dhara_nand *n) {
    return (struct dhara_port *)(void *)((char *)(void *)(uintptr_t)n - offsetof(struct dhara_port, nand));
}

static const nandu_chip *chip_of(const struct dhara_nand *n) {
    return &port_of(n)->chip;
}

/* As ports say it: -1, and why. */
static int outcome(int answer, dhara_error_t *err) {
    if (answer >= 0)
        return 0;
    if (err != NULL) {
        *err = DHARA_E_MAX;
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
    struct dhara_port *port = port_of(n);
    port->last = port->twice = UINT32_MAX;
    return outcome(chip->erase(chip->context, b, NANDU_MODE_SLC), err);
}

int dhara_nand_prog(const struct dhara_nand *n, dhara_page_t p, const uint8_t *data, dhara_error_t *err) {
    const nandu_chip *chip = chip_of(n);
    struct dhara_port *port = port_of(n);
    if (port->last == p) {
        /* The simulator takes no such program. A chip does both over each other, the code that corrects as well. */
        port->twice = p;
        return 0;
    }
    port->last = p;
    if (++port->programs == port->fails_at) {
        outcome(NANDU_ERR_PROGRAM_FAILED, err);
        if (port->habit == RECOVERS && err != NULL)
            *err = DHARA_E_RECOVER;
        return -1;
    }
    return outcome(chip->program(chip->context, p, 0, data, chip->geometry.page_size), err);
}

int dhara_nand_read(const struct dhara_nand *n, dhara_page_t p, size_t offset, size_t length, uint8_t *data, dhara_error_t *err) {
    const nandu_chip *chip = chip_of(n);
    struct dhara_port *port = port_of(n);
    const uint32_t number = port->reads++;
    int answer = NANDU_ERR_BUS;
    if (number < port->fails_from || number >= port->fails_to)
        answer = port->twice == p ? NANDU_ERR_UNCORRECTABLE
                                  : chip->read(chip->context, p, (uint32_t)offset, data, (uint32_t)length);
    return outcome(answer, port->habit == SILENT ? NULL : err);
}
