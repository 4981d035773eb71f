/* Image files of the simulator, read only. Format: "Image file of the simulator" of FORMAT-LAB.md. For tests on a host. */
#ifndef IMAGE_H
#define IMAGE_H

#include "../nandu_reader.h"

/* What a read of a harmed page does whose bits differ from one read to the next. */
enum image_unstable { UNSTABLE_READS, UNSTABLE_FAILS };

struct image_page {
    const uint8_t *content; /* main and spare area; null: erased */
    uint8_t fails;
    uint8_t is_unstable;
};

struct image {
    uint8_t *file;
    size_t file_size;
    uint32_t page_size, spare_size, pages_per_block, block_count, pairing, tag_size, correctable;
    uint16_t *lsb_pages;
    struct image_page *pages;
    enum image_unstable unstable;
    unsigned long reads, reads_max; /* so many were made; beyond so many all fail, if not 0 */
};

/* Opens an image; prints what is wrong with it and returns -1 otherwise. */
int image_open(struct image *image, const char *path);
void image_close(struct image *image);
/* What the reader asks for. */
void image_config(struct image *image, nr_config *config);

/* CRC-32C. */
uint32_t image_crc(const uint8_t *b, size_t size);

#endif
