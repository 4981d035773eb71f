/*
 * Damaged images: fuzz COUNT SEED IMAGE...
 *
 * Takes an image, damages some of the pages that its own reading touches, in most cases with the checksum made right again, and
 * reads everything. Nothing may crash, read outside of the buffer (which is what the sanitizers look for), or go on for ever.
 */
#define _POSIX_C_SOURCE 200809L
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAMAGED_MAX = 6, TOUCHED_MAX = 4096, READS_MAX = 200000 };

static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) % below);
}

static uint32_t crc32c(const uint8_t *b, size_t size)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t x = n;
            for (int i = 0; i < 8; i++) x = x >> 1 ^ (x & 1 ? 0x82F63B78 : 0);
            table[n] = x;
        }
    uint32_t crc = 0xFFFFFFFF;
    while (size--) crc = crc >> 8 ^ table[(crc ^ *b++) & 255];
    return ~crc;
}

/* An image, and the pages that reading it touches. */
struct subject {
    struct image image;
    int (*read)(void *, uint32_t, uint32_t, void *, void *);
    uint32_t touched[TOUCHED_MAX];
    uint32_t touched_count;
};

static int note(void *context, uint32_t block, uint32_t page, void *main_area, void *tag)
{
    struct subject *s = context;
    uint32_t address = block * s->image.pages_per_block + page;
    if (s->image.pages[address].content && s->touched_count < TOUCHED_MAX) s->touched[s->touched_count++] = address;
    return s->read(&s->image, block, page, main_area, tag);
}

/* Reads what there is; what it finds is not looked at. */
static void use(const nr_config *config, uint32_t some)
{
    static nr_reader r;
    static uint8_t out[70000];
    uint8_t key[NR_KEY_MAX];
    size_t size;
    nr_value value;
    nr_file directory, file;
    nr_name name;
    uint8_t *buffer = malloc(config->page_size);
    if (nr_mount(&r, config, buffer) >= 0) {
        size = r.key_size;
        memset(key, 0, sizeof key);
        for (uint32_t i = 0; i < some && nr_next(&r, key, &size, i > 0, &value) >= 0; i++) {
            nr_read(&r, &value, chance(value.size + 2), out, chance(sizeof out));
            for (uint32_t j = 0; j < size && !chance(4); j++) key[chance((uint32_t)size)] = (uint8_t)chance(256);
            nr_find(&r, key, size, &value);
        }
        if (nr_open(&r, "/", &directory) >= 0) {
            memset(&name, 0, sizeof name);
            for (uint32_t i = 0; i < some && nr_list(&r, &directory, &name) >= 0; i++) {
                if (nr_open(&r, name.name, &file) < 0) continue;
                nr_readlink(&r, &file, (char *)out, chance(300));
                nr_file_read(&r, &file, chance(2) ? 0 : chance(60000), out, chance(sizeof out));
                if (file.mode >> 12 == 4 && chance(2)) {
                    directory = file;
                    memset(&name, 0, sizeof name);
                }
            }
        }
        if (!chance(4) && r.table && nr_snapshot(&r, chance(100000)) >= 0) nr_find(&r, key, size, &value);
    }
    free(buffer);
}

/* Makes a damaged copy of a page. */
static uint8_t *damaged(const struct subject *s, uint32_t page)
{
    uint32_t size = s->image.page_size + s->image.spare_size, page_size = s->image.page_size;
    uint8_t *b = malloc(size);
    memcpy(b, s->image.pages[page].content, size);
    int has_header = b[4] == 'n' && b[5] == 'd';
    switch (chance(10)) {
    case 0:
        memset(b, 0xFF, page_size);
        return b;
    case 1: /* another page */
        memcpy(b, s->image.pages[s->touched[chance(s->touched_count)]].content, page_size);
        break;
    case 2: /* the rest is missing */
        for (uint32_t at = chance(page_size), fill = chance(2) ? 0xFF : 0; at < page_size; at++) b[at] = (uint8_t)fill;
        break;
    default:
        /* Most of what has a meaning stands in front. */
        for (uint32_t i = 1 + chance(4); i--;) {
            uint32_t at = chance(2) ? 4 + chance(140) : chance(page_size);
            static const uint8_t edges[] = { 0, 1, 0x7F, 0x80, 0xFE, 0xFF };
            b[at] = (uint8_t)(chance(2) ? chance(256) : chance(2) ? edges[chance(6)] : b[at] + chance(3) - 1);
        }
    }
    if (has_header && chance(8)) {
        if (chance(16)) {
            for (int i = 0; i < 4; i++) b[16 + i] = (uint8_t)(page >> 8 * i);
        }
        uint32_t crc = crc32c(b + 4, page_size - 4);
        for (int i = 0; i < 4; i++) b[i] = (uint8_t)(crc >> 8 * i);
    }
    return b;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 3 ? strtoul(argv[1], 0, 10) : 0, endless = 0;
    uint64_t seed = argc > 3 ? strtoull(argv[2], 0, 10) : 0;
    int subject_count = argc - 3;
    if (subject_count < 1) {
        fprintf(stderr, "usage: fuzz COUNT SEED IMAGE...\n");
        return 2;
    }
    struct subject *subjects = calloc((size_t)subject_count, sizeof *subjects);
    for (int i = 0; i < subject_count; i++) {
        struct subject *s = &subjects[i];
        nr_config config;
        if (image_open(&s->image, argv[3 + i])) return 1;
        image_config(&s->image, &config);
        s->read = config.read;
        config.read = note;
        config.context = s;
        state = 1;
        use(&config, 12);
    }
    for (unsigned long n = 0; n < count; n++) {
        uint32_t pages[DAMAGED_MAX], page_count = 0;
        const uint8_t *before[DAMAGED_MAX];
        state = seed * 1000003 + n;
        struct subject *s = &subjects[chance((uint32_t)subject_count)];
        nr_config config;
        image_config(&s->image, &config);
        if (!s->touched_count) continue;
        for (uint32_t i = 1 + chance(DAMAGED_MAX / 2); i--; page_count++) {
            pages[page_count] = s->touched[chance(s->touched_count)];
            before[page_count] = s->image.pages[pages[page_count]].content;
            s->image.pages[pages[page_count]].content = damaged(s, pages[page_count]);
        }
        s->image.reads = 0;
        s->image.reads_max = READS_MAX;
        alarm(60);
        use(&config, 12);
        if (s->image.reads > READS_MAX) {
            fprintf(stderr, "fuzz: case %lu of %s reads more than %d pages\n", n, argv[3 + (s - subjects)], READS_MAX);
            endless++;
        }
        /* The last copy first, since a page may have been damaged twice. */
        while (page_count--) {
            free((void *)s->image.pages[pages[page_count]].content);
            s->image.pages[pages[page_count]].content = before[page_count];
        }
    }
    printf("%lu damaged images, %lu without an end\n", count, endless);
    for (int i = 0; i < subject_count; i++) image_close(&subjects[i].image);
    free(subjects);
    return endless > 0;
}
