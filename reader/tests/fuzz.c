/*
 * Damaged images: fuzz COUNT SEED IMAGE...
 *
 * Takes an image, damages some of the pages that its own reading touches, in most cases with the checksum made right again, and
 * reads everything. Nothing may crash, read outside of the buffer (which is what the sanitizers look for), or go on for ever. In some cases the checksum
 * stays wrong and the page is none that a mount looks at; then what is read must be an error or what was there.
 */
#define _POSIX_C_SOURCE 200809L
#include "image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAMAGED_MAX = 6, TOUCHED_MAX = 4096, READS_MAX = 200000, KNOWN_MAX = 24 };

static uint64_t state;

static uint32_t chance(uint32_t below)
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) % below);
}

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static uint32_t word(const uint8_t *b) { return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24; }

/* XXH32 with seed 0. */
static uint32_t xxh32(const uint8_t *b, size_t size)
{
    const uint32_t p[] = { 2654435761u, 2246822519u, 3266489917u, 668265263u, 374761393u };
    uint32_t v[] = { p[0] + p[1], p[1], 0, 0u - p[0] }, h = p[4];
    size_t at = 0;
    for (; size - at >= 16; at += 16)
        for (int i = 0; i < 4; i++) v[i] = rotate(v[i] + word(b + at + 4 * i) * p[1], 13) * p[0];
    if (size >= 16) h = rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18);
    h += (uint32_t)size;
    for (; size - at >= 4; at += 4) h = rotate(h + word(b + at) * p[2], 17) * p[3];
    for (; at < size; at++) h = rotate(h + b[at] * p[4], 11) * p[0];
    h = (h ^ h >> 15) * p[1];
    h = (h ^ h >> 13) * p[2];
    return h ^ h >> 16;
}

/* An image, and the pages that reading it touches. */
struct subject {
    struct image image;
    int (*read)(void *, uint32_t, uint32_t, void *, void *);
    uint32_t touched[TOUCHED_MAX];
    uint32_t touched_count, touched_by_mount;
    /* Records and files, and the checksums of what they hold. */
    struct known {
        uint8_t key[NR_KEY_MAX];
        size_t key_size;
        char path[NR_NAME_MAX + 1];
        uint32_t sum;
    } known[KNOWN_MAX];
    uint32_t known_count;
};

static int note(void *context, uint32_t block, uint32_t page, void *main_area, void *tag)
{
    struct subject *s = context;
    uint32_t address = block * s->image.pages_per_block + page;
    if (s->image.pages[address].content && s->touched_count < TOUCHED_MAX) s->touched[s->touched_count++] = address;
    return s->read(&s->image, block, page, main_area, tag);
}

/* Reads what there is; what it finds is not looked at. */
static void look_around(nr_reader *r, uint32_t some)
{
    static uint8_t out[70000];
    uint8_t key[NR_KEY_MAX] = { 0 };
    size_t size = r->key_size;
    nr_value value;
    nr_file directory, file;
    nr_name name;
    for (uint32_t i = 0; i < some && nr_next(r, key, &size, i > 0, &value) >= 0; i++) {
        nr_read(r, &value, chance(value.size + 2), out, chance(sizeof out));
        for (uint32_t j = 0; j < size && !chance(4); j++) key[chance((uint32_t)size)] = (uint8_t)chance(256);
        nr_find(r, key, size, &value);
    }
    if (nr_open(r, "/", &directory) < 0) return;
    memset(&name, 0, sizeof name);
    for (uint32_t i = 0; i < some && nr_list(r, &directory, &name) >= 0; i++) {
        if (nr_open(r, name.name, &file) < 0) continue;
        nr_readlink(r, &file, (char *)out, chance(300));
        nr_file_read(r, &file, chance(2) ? 0 : chance(60000), out, chance(sizeof out));
        if (file.mode >> 12 == 4 && chance(2)) {
            directory = file;
            memset(&name, 0, sizeof name);
        }
    }
}

static void use(const nr_config *config, uint32_t some)
{
    static nr_reader r;
    uint8_t *buffer = malloc(config->page_size);
    if (nr_mount(&r, config, buffer) >= 0) {
        look_around(&r, some);
        /* Snapshots have small numbers, the oldest first. */
        for (uint32_t number = 1; number < 12; number++)
            if (nr_snapshot(&r, number) >= 0) {
                look_around(&r, some / 2);
                break;
            }
    }
    free(buffer);
}

/* The checksum of what a record or a file holds, or an error. */
static int64_t digest(nr_reader *r, const struct known *k)
{
    static uint8_t out[1 << 20];
    nr_value value;
    nr_file file;
    int32_t size = k->key_size ? nr_find(r, k->key, k->key_size, &value) : nr_open(r, k->path, &file);
    if (size >= 0) size = k->key_size ? nr_read(r, &value, 0, out, sizeof out) : nr_file_read(r, &file, 0, out, sizeof out);
    return size < 0 ? size : (int64_t)xxh32(out, (size_t)size);
}

/* Notes what some records and files hold, and which pages a mount touches. */
static int learn(struct subject *s, const nr_config *config)
{
    static nr_reader r;
    uint8_t *buffer = malloc(config->page_size);
    nr_value value;
    nr_file directory;
    nr_name name;
    if (nr_mount(&r, config, buffer) < 0) {
        free(buffer);
        return -1;
    }
    s->touched_by_mount = s->touched_count;
    struct known *k = s->known;
    size_t size = r.key_size;
    uint8_t key[NR_KEY_MAX] = { 0 };
    for (int i = 0; i < KNOWN_MAX / 2 && nr_next(&r, key, &size, i > 0, &value) >= 0; i++, k++) {
        memcpy(k->key, key, size);
        k->key_size = size;
    }
    memset(&name, 0, sizeof name);
    if (nr_open(&r, "/", &directory) >= 0)
        for (int i = 0; i < KNOWN_MAX / 2 && nr_list(&r, &directory, &name) >= 0; i++)
            if (name.type == 8) strcpy((k++)->path, name.name);
    s->known_count = (uint32_t)(k - s->known);
    for (k = s->known; k < s->known + s->known_count; k++) {
        int64_t found = digest(&r, k);
        if (found < 0) k->key_size = 0, strcpy(k->path, "no such file");
        k->sum = (uint32_t)found;
    }
    free(buffer);
    return 0;
}

/* Whether what was noted can be read as it was, or not at all. */
static int is_honest(const struct subject *s, const nr_config *config)
{
    static nr_reader r;
    uint8_t *buffer = malloc(config->page_size);
    int is_same = nr_mount(&r, config, buffer) >= 0;
    for (uint32_t i = 0; i < s->known_count && is_same; i++) {
        int64_t found = digest(&r, &s->known[i]);
        if (found == NR_NOT_FOUND ? strcmp(s->known[i].path, "no such file") : found >= 0) is_same = found == (int64_t)s->known[i].sum;
    }
    free(buffer);
    return is_same;
}

/* Whether the same volume, if it were one of format 1, is refused. */
static int refuses_format_1(struct subject *s, const nr_config *config)
{
    static nr_reader r;
    uint32_t count = s->image.pages_per_block * s->image.block_count, page_size = s->image.page_size;
    const uint8_t **before = calloc(count, sizeof *before);
    uint8_t *buffer = malloc(page_size);
    for (uint32_t i = 0; i < count; i++) {
        before[i] = s->image.pages[i].content;
        if (!before[i] || before[i][4] != 'n' || before[i][5] != 'd') continue;
        uint8_t *b = malloc(page_size + s->image.spare_size);
        memcpy(b, before[i], page_size + s->image.spare_size);
        b[6] = 1;
        uint32_t crc = image_crc(b + 4, page_size - 4);
        for (int j = 0; j < 4; j++) b[j] = (uint8_t)(crc >> 8 * j);
        s->image.pages[i].content = b;
    }
    int is_refused = nr_mount(&r, config, buffer) == NR_UNSUPPORTED;
    for (uint32_t i = 0; i < count; i++) {
        if (s->image.pages[i].content != before[i]) free((void *)s->image.pages[i].content);
        s->image.pages[i].content = before[i];
    }
    free(buffer);
    free(before);
    return is_refused;
}

/* Makes a damaged copy of a page; its checksum is made right most of the time, if that `may` be. */
static uint8_t *damaged(const struct subject *s, uint32_t page, int may)
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
    if (may && has_header && chance(8)) {
        if (chance(16)) {
            for (int i = 0; i < 4; i++) b[16 + i] = (uint8_t)(page >> 8 * i);
        }
        uint32_t sum = xxh32(b + 4, page_size - 4);
        for (int i = 0; i < 4; i++) b[i] = (uint8_t)(sum >> 8 * i);
    }
    return b;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 3 ? strtoul(argv[1], 0, 10) : 0, endless = 0, tried = 0, wrong = 0;
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
        if (learn(s, &config)) {
            fprintf(stderr, "fuzz: %s cannot be mounted\n", argv[3 + i]);
            return 1;
        }
        state = 1;
        use(&config, 12);
        image_config(&s->image, &config);
        if (!refuses_format_1(s, &config)) {
            fprintf(stderr, "fuzz: %s is not refused when it says format 1\n", argv[3 + i]);
            return 1;
        }
    }
    for (unsigned long n = 0; n < count; n++) {
        uint32_t pages[DAMAGED_MAX], page_count = 0;
        const uint8_t *before[DAMAGED_MAX];
        uint8_t failed[DAMAGED_MAX];
        state = seed * 1000003 + n;
        struct subject *s = &subjects[chance((uint32_t)subject_count)];
        nr_config config;
        image_config(&s->image, &config);
        if (!s->touched_count) continue;
        int must_show = !chance(4) && s->touched_by_mount < s->touched_count;
        for (uint32_t i = 1 + chance(DAMAGED_MAX / 2); i--; page_count++) {
            uint32_t from = must_show ? s->touched_by_mount : 0;
            pages[page_count] = s->touched[from + chance(s->touched_count - from)];
            for (uint32_t j = 0; j < s->touched_by_mount && must_show; j++)
                if (s->touched[j] == pages[page_count]) must_show = 0;
            before[page_count] = s->image.pages[pages[page_count]].content;
            s->image.pages[pages[page_count]].content = damaged(s, pages[page_count], !must_show);
            failed[page_count] = s->image.pages[pages[page_count]].fails;
            s->image.pages[pages[page_count]].fails |= !chance(12);
        }
        s->image.reads = 0;
        s->image.reads_max = READS_MAX;
        alarm(60);
        use(&config, 12);
        if (must_show) {
            tried++;
            if (!is_honest(s, &config)) {
                fprintf(stderr, "fuzz: case %lu of %s reads something else\n", n, argv[3 + (s - subjects)]);
                wrong++;
            }
        }
        if (s->image.reads > READS_MAX) {
            fprintf(stderr, "fuzz: case %lu of %s reads more than %d pages\n", n, argv[3 + (s - subjects)], READS_MAX);
            endless++;
        }
        /* The last copy first, since a page may have been damaged twice. */
        while (page_count--) {
            free((void *)s->image.pages[pages[page_count]].content);
            s->image.pages[pages[page_count]].content = before[page_count];
            s->image.pages[pages[page_count]].fails = failed[page_count];
        }
    }
    printf("%lu damaged images, %lu without an end; of %lu whose checksums stayed wrong, %lu were read as something else\n", count, endless,
           tried, wrong);
    for (int i = 0; i < subject_count; i++) image_close(&subjects[i].image);
    free(subjects);
    return endless + wrong > 0;
}
