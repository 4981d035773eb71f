#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 4096, ENTRY = 64, MARK_SIZE = 4 };

/* Bytes that are taken one after another; beyond the end there are zeros, and `failed` is set. */
struct cursor {
    const uint8_t *at, *end;
    int failed;
};

static uint64_t take(struct cursor *c, unsigned size)
{
    uint64_t n = 0;
    if ((size_t)(c->end - c->at) < size) {
        c->failed = 1;
        c->at = c->end;
        return 0;
    }
    for (unsigned i = 0; i < size; i++) n |= (uint64_t)c->at[i] << 8 * i;
    c->at += size;
    return n;
}

static void skip(struct cursor *c, uint64_t size)
{
    if ((uint64_t)(c->end - c->at) < size) {
        c->failed = 1;
        size = (uint64_t)(c->end - c->at);
    }
    c->at += size;
}

uint32_t image_crc(const uint8_t *b, size_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    while (size--) {
        crc ^= *b++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return ~crc;
}

static int extent(const struct image *image, const uint8_t *b, struct cursor *out)
{
    struct cursor c = { b, b + 16, 0 };
    uint64_t offset = take(&c, 8), size = take(&c, 4);
    uint32_t crc = (uint32_t)take(&c, 4);
    out->failed = 0;
    out->at = out->end = image->file;
    if (!size) return 0;
    if (offset > image->file_size || size > image->file_size - offset) return -1;
    out->at = image->file + offset;
    out->end = out->at + size;
    return image_crc(out->at, size) == crc ? 0 : -1;
}

static int chip(struct image *image, struct cursor *c)
{
    skip(c, take(c, 2));
    skip(c, take(c, 2));
    image->page_size = (uint32_t)take(c, 4);
    image->spare_size = (uint32_t)take(c, 4);
    image->pages_per_block = (uint32_t)take(c, 4);
    image->block_count = (uint32_t)take(c, 4);
    skip(c, 16);
    image->correctable = (uint32_t)take(c, 2);
    skip(c, 5);
    image->pairing = (uint32_t)take(c, 1);
    if (image->pairing == NR_PAIRING_TABLE) {
        uint32_t count = (uint32_t)take(c, 2);
        image->lsb_pages = calloc(count, sizeof *image->lsb_pages);
        for (uint32_t i = 0; i < count; i++) {
            image->lsb_pages[i] = (uint16_t)take(c, 2);
            skip(c, 2);
        }
    }
    skip(c, 28);
    image->tag_size = take(c, 1) & 4 ? (uint32_t)take(c, 2) : 0;
    return c->failed || !image->page_size || !image->pages_per_block
        || (uint64_t)image->pages_per_block * image->block_count > 1u << 24 ? -1 : 0;
}

static int record(struct image *image, struct cursor c, uint32_t block, uint32_t content_size)
{
    uint32_t count = (uint32_t)take(&c, 4);
    struct cursor contents = c;
    skip(&c, 8ull * count);
    uint8_t parts = (uint8_t)take(&c, 1);
    struct image_page *pages = image->pages + (size_t)block * image->pages_per_block;
    if (parts & 1) {
        uint32_t page_count = (uint32_t)take(&c, 4);
        if (page_count > image->pages_per_block) return -1;
        for (uint32_t i = 0; i < page_count; i++) {
            skip(&c, 21);
            if (!(take(&c, 1) & 2)) continue;
            uint64_t offset = take(&contents, 4) * 64;
            uint32_t crc = (uint32_t)take(&contents, 4);
            if (contents.failed || offset > image->file_size || content_size > image->file_size - offset) return -1;
            pages[i].content = image->file + offset;
            if (image_crc(image->file + offset, content_size) != crc) pages[i].fails = 1;
        }
    }
    if (parts & 2) {
        uint32_t page_count = (uint32_t)take(&c, 4);
        while (page_count-- && !c.failed) {
            uint32_t page = (uint32_t)take(&c, 4), harms = (uint32_t)take(&c, 4);
            while (harms-- && !c.failed) {
                skip(&c, 8);
                uint32_t kind = (uint32_t)take(&c, 1), bits = 0;
                if (kind == 1) bits = (uint32_t)take(&c, 2);
                if (kind == 2) skip(&c, 12);
                if (page >= image->pages_per_block) return -1;
                if (kind == 0 || bits > image->correctable) pages[page].fails = 1;
                if (kind == 2 || kind == 3) pages[page].is_unstable = 1;
            }
        }
    }
    return c.failed ? -1 : 0;
}

static int entries(struct image *image, struct cursor c, uint32_t content_size, const uint8_t **last)
{
    while (c.at < c.end) {
        struct cursor e = c;
        uint32_t block = (uint32_t)take(&e, 4);
        skip(&c, ENTRY);
        if (c.failed || block >= image->block_count) return -1;
        last[block] = e.at - 4;
        (void)content_size;
    }
    return 0;
}

static int parse(struct image *image, const uint8_t *h)
{
    struct cursor c = { h + 108, h + 112, 0 }, state, directory, changes, r;
    uint32_t content_size = (uint32_t)take(&c, 4);
    if (extent(image, h + 56, &state) || extent(image, h + 72, &directory) || extent(image, h + 88, &changes)) return -1;
    if (chip(image, &state)) return -1;
    image->pages = calloc((size_t)image->pages_per_block * image->block_count, sizeof *image->pages);
    const uint8_t **last = calloc(image->block_count, sizeof *last);
    int failed = entries(image, directory, content_size, last) || entries(image, changes, content_size, last);
    for (uint32_t block = 0; block < image->block_count && !failed; block++)
        if (last[block] && !(failed = extent(image, last[block] + 16, &r)) && r.at < r.end)
            failed = record(image, r, block, content_size);
    free(last);
    return failed ? -1 : 0;
}

static int usable(const struct image *image, size_t at, uint64_t *generation)
{
    const uint8_t *h = image->file + at;
    struct cursor c = { h, h + HEADER, 0 };
    if (memcmp(h, "nanduIMG", 8)) return 0;
    skip(&c, 8);
    if (take(&c, 4) != image_crc(h + 12, HEADER - 12)) return 0;
    if (take(&c, 2) != 2) return 0;
    skip(&c, 26);
    *generation = take(&c, 8);
    return 1;
}

int image_open(struct image *image, const char *path)
{
    memset(image, 0, sizeof *image);
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    fseek(f, 0, SEEK_END);
    image->file_size = (size_t)ftell(f);
    rewind(f);
    image->file = malloc(image->file_size ? image->file_size : 1);
    size_t got = fread(image->file, 1, image->file_size, f);
    fclose(f);
    uint64_t best = 0, generation;
    const uint8_t *header = 0;
    for (size_t at = 0; at <= HEADER && got == image->file_size && image->file_size >= 2 * HEADER; at += HEADER) {
        if (!usable(image, at, &generation) || (header && generation <= best)) continue;
        best = generation;
        header = image->file + at;
    }
    if (header && !parse(image, header)) return 0;
    fprintf(stderr, "%s: no image of the simulator, or a damaged one\n", path);
    image_close(image);
    return -1;
}

void image_close(struct image *image)
{
    free(image->file);
    free(image->pages);
    free(image->lsb_pages);
    memset(image, 0, sizeof *image);
}

static int read_page(void *context, uint32_t block, uint32_t page, void *main_area, void *tag)
{
    struct image *image = context;
    if (block >= image->block_count || page >= image->pages_per_block) abort();
    const struct image_page *p = image->pages + (size_t)block * image->pages_per_block + page;
    image->reads++;
    if (image->reads_max && image->reads > image->reads_max) return -1;
    memset(main_area, 0xFF, image->page_size);
    if (tag) memset(tag, 0xFF, 16);
    if (p->fails || (p->is_unstable && image->unstable == UNSTABLE_FAILS)) return -1;
    if (!p->content) return 0;
    memcpy(main_area, p->content, image->page_size);
    if (tag && image->tag_size >= 16) memcpy(tag, p->content + image->page_size + MARK_SIZE, 16);
    return 0;
}

void image_config(struct image *image, nr_config *config)
{
    memset(config, 0, sizeof *config);
    config->context = image;
    config->read = read_page;
    config->page_size = image->page_size;
    config->pages_per_block = image->pages_per_block;
    config->block_count = image->block_count;
    config->pairing = image->pairing;
    config->lsb_pages = image->lsb_pages;
}
