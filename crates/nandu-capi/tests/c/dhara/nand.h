/* What a port of Dhara implements, declared anew for the test of the shim: names and types as Dhara has them. */
#ifndef TEST_DHARA_NAND_H
#define TEST_DHARA_NAND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    DHARA_E_NONE = 0,
    DHARA_E_BAD_BLOCK,
    DHARA_E_ECC,
    DHARA_E_TOO_BAD,
    DHARA_E_RECOVER,
    DHARA_E_JOURNAL_FULL,
    DHARA_E_NOT_FOUND,
    DHARA_E_MAP_FULL,
    DHARA_E_CORRUPT_MAP,
    DHARA_E_MAX
} dhara_error_t;
typedef uint32_t dhara_page_t;
typedef uint32_t dhara_block_t;

struct dhara_nand {
    uint8_t log2_page_size;
    uint8_t log2_ppb;
    unsigned int num_blocks;
};

int dhara_nand_is_bad(const struct dhara_nand *n, dhara_block_t b);
void dhara_nand_mark_bad(const struct dhara_nand *n, dhara_block_t b);
int dhara_nand_erase(const struct dhara_nand *n, dhara_block_t b, dhara_error_t *err);
int dhara_nand_prog(const struct dhara_nand *n, dhara_page_t p, const uint8_t *data, dhara_error_t *err);
int dhara_nand_read(const struct dhara_nand *n, dhara_page_t p, size_t offset, size_t length, uint8_t *data, dhara_error_t *err);

#ifdef __cplusplus
}
#endif

#endif
