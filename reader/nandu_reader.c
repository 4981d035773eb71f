/*
 * nandu_reader: see nandu_reader.h. The words are those of FORMAT.md.
 *
 * Nothing is kept of what can be read again: one page is in memory at a time, and what waits is looked for in the commits that list
 * it. All numbers of the flash are checked where they are used, against the page or against the chip.
 *
 * SPDX-License-Identifier: MIT
 */
#include "nandu_reader.h"

#define NONE 0xFFFFFFFFu
#define HEADER_SIZE 36u
#define HEIGHT_MAX 8u
#define POSITIONS_MAX 8u
#define READY_MAX 14u
#define WINDOW_MAX 12u
#define TAG_SIZE 16u
#define FRAGMENTS_MAX 17
#define PREFIX 11u /* keys that begin alike so far are looked for together: an inode, a kind and four bytes more */
#define ANCHORS 4u
#define RESERVED 4u /* bytes that keys of snapshots have before those of a user */
#define GROUP_MAX 292u
#define REST_MAX 96u
#define VALUE_MAX (16u << 20)

enum { KIND_ANCHOR = 1, KIND_TABLE, KIND_VALUE = 4, KIND_COMMIT = 12, KIND_NODE };
enum { FLAG_CLEAN = 2 };
enum { CELLS_FIXED = 1, CELLS_BYTES = 2 };
enum { FEATURE_RAW = 1, FEATURE_TWO_BITS = 2, FEATURE_TAGS = 16, FEATURE_COMMITS = 32 };
enum { SLOT_OPEN = 14, SLOT_NONE = 15 };
enum { SECTION_CHANGES = 1, SECTION_VALUE = 3, SECTION_WINDOW = 4 };
enum { CHANGE_DELETE = 0, CHANGE_PUT = 1, CHANGE_IN_LEAF = 6 };
/* Where a value is: in its record, in pages that its head names, in a raw page, in a commit; or there was none. */
enum { VALUE_HERE, VALUE_PAGES, VALUE_RAW, VALUE_BLOB, VALUE_NOTHING };
/* The last byte of what heads begin with, and the record of a snapshot that says that nothing stood there. */
enum { MARK_PAGES = 0x9B, MARK_RAW, MARK_BLOB, MARK_NOTHING };
/* The last byte of what keys of snapshots begin with: of what says which there are; behind that of the last slot. */
enum { SLOT_DIRECTORY = 0xD0, SLOT_END = 0xE0 };

#define TRY(call) do { int try_ = (call); if (try_ < 0) return try_; } while (0)

/* What a mount remembers fits 8 KiB. */
typedef char nr_reader_fits[sizeof(nr_reader) <= 8192 ? 1 : -1];

/* ---- bytes ---- */

static void copy(void *to, const void *from, uint32_t size)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    while (size--) *t++ = *f++;
}

static void clear(void *to, uint32_t size)
{
    uint8_t *t = to;
    while (size--) *t++ = 0;
}

static uint32_t le16(const uint8_t *b) { return b[0] | (uint32_t)b[1] << 8; }
static uint32_t le32(const uint8_t *b) { return le16(b) | le16(b + 2) << 16; }
static uint64_t le64(const uint8_t *b) { return le32(b) | (uint64_t)le32(b + 4) << 32; }

static void put32(uint8_t *b, uint32_t n)
{
    for (int i = 0; i < 4; i++, n >>= 8) b[i] = (uint8_t)n;
}

/* As memcmp, and what is shorter comes first. */
static int compare(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size)
{
    for (uint32_t i = 0; i < a_size && i < b_size; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return a_size == b_size ? 0 : a_size < b_size ? -1 : 1;
}

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

/* XXH32 with seed 0. */
static uint32_t xxh32(const uint8_t *b, uint32_t size)
{
    const uint32_t p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u, p5 = 374761393u;
    uint32_t v[4] = { p1 + p2, p2, 0, 0u - p1 }, h = p5, left = size;
    for (; left >= 16; left -= 16)
        for (int i = 0; i < 4; i++, b += 4) v[i] = rotate(v[i] + le32(b) * p2, 13) * p1;
    if (size >= 16) h = rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18);
    h += size;
    for (; left >= 4; left -= 4, b += 4) h = rotate(h + le32(b) * p3, 17) * p4;
    for (; left; left--) h = rotate(h + *b++ * p5, 11) * p1;
    h = (h ^ h >> 15) * p2;
    h = (h ^ h >> 13) * p3;
    return h ^ h >> 16;
}

/* CRC-32C, of tags and of format 1: of few pages, so bit by bit. */
static uint32_t crc32c(const uint8_t *b, uint32_t size)
{
    uint32_t crc = NONE;
    while (size--) {
        crc ^= *b++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return ~crc;
}

/* Whether bytes are those of an erased page, of which so many bits may have flipped. */
static int is_erased(const uint8_t *b, uint32_t size, uint32_t most)
{
    uint32_t zeros = 0;
    for (; size--; b++)
        for (uint8_t x = (uint8_t)~*b; x; x &= (uint8_t)(x - 1)) zeros++;
    return zeros <= most;
}

/* A number of `size` bits from bit `at` on, lowest bit first. */
static uint32_t bits(const uint8_t *b, uint32_t at, uint32_t size)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < size; i++) n |= (uint32_t)(b[(at + i) >> 3] >> ((at + i) & 7) & 1) << i;
    return n;
}

/* ---- pages ---- */

static int fetch(nr_reader *r, uint32_t page, void *tag)
{
    const nr_config *c = r->config;
    r->loaded = NONE;
    if (page >= r->page_count) return NR_CORRUPT;
    return c->read(c->context, page / c->pages_per_block, page % c->pages_per_block, r->buffer, tag) ? NR_READ : NR_OK;
}

/* Whether what was read is a page with a header that states this address. */
static int accept(nr_reader *r, uint32_t page)
{
    const uint8_t *b = r->buffer;
    uint32_t size = r->config->page_size - 4;
    if (b[4] != 'n' || b[5] != 'd' || le32(b + 16) != page || b[34] < 2 || b[34] > POSITIONS_MAX) return NR_CORRUPT;
    if (b[6] == 1 && crc32c(b + 4, size) == le32(b)) return NR_UNSUPPORTED;
    if (!r->any_volume && le32(b + 20) != r->volume) return NR_CORRUPT;
    if (xxh32(b + 4, size) != le32(b)) return NR_CORRUPT;
    if (b[6] != 2 || b[35]) return NR_UNSUPPORTED;
    r->sequence = le64(b + 8);
    if (r->sequence > r->limit) return NR_CORRUPT;
    r->kind = b[7];
    r->body = (HEADER_SIZE + 2u * b[34] + 3u) & ~3u;
    r->loaded = page;
    return NR_OK;
}

static int load(nr_reader *r, uint32_t page)
{
    if (page == r->loaded) return NR_OK;
    TRY(fetch(r, page, 0));
    return accept(r, page);
}

static int load_raw(nr_reader *r, uint32_t page, uint32_t check)
{
    TRY(fetch(r, page, 0));
    return xxh32(r->buffer, r->config->page_size) == check ? NR_OK : NR_CORRUPT;
}

/* ---- the log: blocks and streams ---- */

/* The page that is number `nth` among those of a block that are used with one bit a cell. */
static uint32_t nth_page(const nr_config *c, uint32_t block, uint32_t nth)
{
    uint32_t page = nth;
    if (c->pairing == NR_PAIRING_TABLE) page = c->lsb_pages[nth];
    if (c->pairing == NR_PAIRING_DISTANCE_3 && nth) page = 2 * nth - 1;
    if (c->pairing == NR_PAIRING_SCHEME_A && nth > 1) page = 2 + 4 * ((nth - 2) / 2) + nth % 2;
    return block * c->pages_per_block + page;
}

static uint32_t nth_count(const nr_config *c)
{
    return c->pairing == NR_PAIRING_NONE ? c->pages_per_block : c->pages_per_block / 2;
}

/* 0: a page with header; 1: erased; or an error. */
static int probe(nr_reader *r, uint32_t page)
{
    uint32_t size = r->config->page_size;
    TRY(fetch(r, page, 0));
    int result = accept(r, page);
    return result < 0 && is_erased(r->buffer, size, size / 64) ? 1 : result;
}

struct anchor {
    uint64_t sequence;
    uint32_t page;
    uint32_t checkpoint;
    uint32_t positions, streams, raw; /* entries in headers; streams that there are; the one of raw pages */
    uint32_t ready;
    uint32_t head_blocks[POSITIONS_MAX];
    uint32_t head_pages[POSITIONS_MAX];
    uint32_t ready_blocks[READY_MAX];
    uint32_t tail_block, tail_nth;
    uint64_t tail_sequence;
    uint8_t is_clean, has_tags;
};

/* Whether the page that was read is a commit behind the anchor; or an error if an anchor that was newer is lost. */
static int is_current(const nr_reader *r, const struct anchor *a)
{
    const uint8_t *h = r->buffer;
    uint32_t checkpoint = le32(h + 28), is_sound = 1, is_any = 0;
    if (r->sequence <= a->sequence) return 0;
    for (uint32_t i = 0; i < h[34]; i++) {
        uint32_t slot = h[HEADER_SIZE + 2 * i + 1] >> 4;
        if (slot != SLOT_NONE) is_any = 1;
        if (i < a->streams && slot >= a->ready && slot < SLOT_OPEN) is_sound = 0;
    }
    if (checkpoint > a->checkpoint && is_any) return NR_CORRUPT;
    return checkpoint == a->checkpoint && r->kind == KIND_COMMIT && !h[32] && h[34] == a->positions && is_sound
        && h[HEADER_SIZE + 1] >> 4 != SLOT_NONE;
}

/*
 * Looks at page `nth` of a block, and if that is damaged at the one behind it: which of them is what is wanted; NR_NOT_FOUND if
 * none is. It is loaded then.
 */
static int32_t look(nr_reader *r, const struct anchor *a, uint32_t block, uint32_t nth, uint32_t end)
{
    if (block >= r->config->block_count) return NR_NOT_FOUND;
    for (int tries = 0; tries < 2 && nth < end; tries++, nth++) {
        int found = probe(r, nth_page(r->config, block, nth));
        if (found == 1) break;
        if (found == NR_UNSUPPORTED) r->is_old = 1;
        if (found < 0) continue;
        if (!a) {
            if (r->kind == KIND_ANCHOR || r->kind == KIND_TABLE) return (int32_t)nth;
            continue;
        }
        found = is_current(r, a);
        if (found < 0) return found;
        return found ? (int32_t)nth : NR_NOT_FOUND;
    }
    return NR_NOT_FOUND;
}

/* The last page of a block, from its page `from` on, that is what is wanted. */
static int32_t last_page(nr_reader *r, const struct anchor *a, uint32_t block, uint32_t from)
{
    uint32_t high = nth_count(r->config);
    int32_t last = NR_NOT_FOUND;
    while (from < high) {
        uint32_t middle = from + (high - from) / 2;
        int32_t found = look(r, a, block, middle, high);
        if (found < NR_NOT_FOUND) return found;
        if (found < 0) {
            high = middle;
        } else {
            last = found;
            from = (uint32_t)found + 1;
        }
    }
    return last;
}

/* A block that begins with a page of a checkpoint. */
struct begun {
    uint64_t sequence;
    uint32_t block, nth;
};

static int begins(nr_reader *r, uint32_t block, struct begun *b)
{
    int32_t nth = look(r, 0, block, 0, 2);
    b->sequence = 0;
    if (nth < 0) return 0;
    b->sequence = r->sequence;
    b->block = block;
    b->nth = (uint32_t)nth;
    return 1;
}

/* The newest anchor of these blocks, if it is newer than the one known. The block that was begun last has it, most often. */
static void newest_anchor(nr_reader *r, struct anchor *a, struct begun *begun)
{
    for (;;) {
        struct begun *b = begun;
        for (uint32_t i = 1; i < ANCHORS; i++)
            if (begun[i].sequence > b->sequence) b = &begun[i];
        if (b->sequence <= a->sequence) return;
        b->sequence = 0;
        /* Pages of the block table without an anchor are of a checkpoint that a cut stopped. */
        int32_t last = last_page(r, 0, b->block, b->nth + 1);
        for (last = last < 0 ? (int32_t)b->nth : last; last >= (int32_t)b->nth; last--) {
            uint32_t page = nth_page(r->config, b->block, (uint32_t)last);
            if (load(r, page) < 0 || r->kind != KIND_ANCHOR) continue;
            if (r->sequence > a->sequence) {
                a->page = page;
                a->sequence = r->sequence;
            }
            break;
        }
    }
}

/*
 * The newest anchor. Anchor blocks are the first good ones of the chip: where one is, the others are behind it, and where bad blocks
 * drove them apart it names them.
 */
static int find_anchor(nr_reader *r, struct anchor *a)
{
    struct begun begun[ANCHORS];
    uint32_t block = 0, named[ANCHORS], count = 0;
    clear(begun, sizeof begun);
    r->any_volume = 1;
    for (uint32_t seen = 0; block < r->config->block_count && seen < ANCHORS; block++) {
        count += (uint32_t)begins(r, block, &begun[count]);
        seen += count > 0;
    }
    newest_anchor(r, a, begun);
    if (!a->sequence) return r->is_old ? NR_UNSUPPORTED : NR_NO_VOLUME;
    TRY(load(r, a->page));
    for (uint32_t i = 0; i < ANCHORS; i++) named[i] = le32(r->buffer + r->body + 24 + 4 * i);
    for (uint32_t i = 0; i < ANCHORS; i++) {
        begun[i].sequence = 0;
        if (named[i] >= block) begins(r, named[i], &begun[i]);
    }
    newest_anchor(r, a, begun);
    return load(r, a->page);
}

static int read_anchor(nr_reader *r, struct anchor *a)
{
    const nr_config *c = r->config;
    clear(a, sizeof *a);
    TRY(find_anchor(r, a));
    r->any_volume = 0;
    const uint8_t *h = r->buffer, *b = h + r->body, *p = b + 48;
    r->volume = le32(h + 20);
    r->commit = le32(h + 24);
    a->checkpoint = le32(h + 28);
    a->is_clean = h[33] & FLAG_CLEAN;
    a->positions = h[34];
    uint32_t features = le32(b), raws = b[46];
    if (features & ~(uint32_t)(FEATURE_RAW | FEATURE_TWO_BITS | FEATURE_TAGS | FEATURE_COMMITS) || !(features & FEATURE_COMMITS)
        || b[41])
        return NR_UNSUPPORTED;
    if (le32(b + 12) != c->page_size || le32(b + 16) != c->pages_per_block || le32(b + 20) != c->block_count)
        return NR_GEOMETRY;
    a->ready = b[43];
    a->has_tags = (features & FEATURE_TAGS) != 0;
    if (a->ready > READY_MAX || raws > 2 || 2 * raws >= a->positions) return NR_CORRUPT;
    a->streams = a->positions - raws;
    a->raw = a->streams - raws;
    r->is_raw = raws > 0;
    a->tail_block = NONE;
    if (a->has_tags) {
        uint32_t page = le32(p);
        a->tail_sequence = le64(p + 8);
        if (page < r->page_count) {
            a->tail_block = page / c->pages_per_block;
            while (a->tail_nth < nth_count(c) && nth_page(c, a->tail_block, a->tail_nth) < page) a->tail_nth++;
        }
        p += 16;
    }
    if ((uint32_t)(p - h) + 8 * a->positions + 4 * a->ready > c->page_size) return NR_CORRUPT;
    for (uint32_t i = 0; i < a->positions; i++, p += 8) {
        a->head_blocks[i] = le32(p);
        a->head_pages[i] = le16(p + 4);
    }
    for (uint32_t i = 0; i < a->ready; i++, p += 4) a->ready_blocks[i] = le32(p);
    return NR_OK;
}

/*
 * The newest commit: commits stand in one stream, which opens the blocks of the ready list from the first on, and goes on in the block
 * that it had at the checkpoint before that.
 */
static int find_commit(nr_reader *r, struct anchor *a)
{
    const nr_config *c = r->config;
    uint32_t block = a->head_blocks[0], from = a->head_pages[0], low = 0, high = a->ready, newest = NONE;
    if (a->is_clean) {
        a->tail_block = NONE;
        return NR_OK;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int32_t found = look(r, a, a->ready_blocks[middle], 0, nth_count(c));
        if (found < NR_NOT_FOUND) return found;
        if (found < 0) {
            high = middle;
            continue;
        }
        low = middle + 1;
        block = a->ready_blocks[middle];
        from = (uint32_t)found + 1;
        newest = r->loaded;
    }
    int32_t last = last_page(r, a, block, from);
    if (last < NR_NOT_FOUND) return last;
    if (last >= 0) newest = nth_page(c, block, (uint32_t)last);
    if (newest == NONE) return NR_OK;
    TRY(load(r, newest));
    r->commit = newest;
    /* Tagged pages stand behind where it says that the stream of raw pages stood. */
    uint32_t position = le16(r->buffer + HEADER_SIZE + 2 * a->raw), slot = position >> 12;
    a->tail_block = NONE;
    a->tail_sequence = r->sequence;
    a->tail_nth = (position & 0xFFF) + 1;
    if (slot < a->ready) a->tail_block = a->ready_blocks[slot];
    if (slot == SLOT_OPEN) a->tail_block = a->head_blocks[a->raw];
    return NR_OK;
}

/* ---- the tree ---- */

struct node {
    const uint8_t *b;        /* its bytes, in the page buffer */
    uint32_t size;
    uint32_t count;          /* entries or children */
    uint32_t keys;           /* entries or separators */
    uint32_t ends, end_size; /* cells of any length */
    uint32_t prefix, prefix_size;
    uint32_t heap;
    uint32_t base, column, width, shift; /* cells of one width */
    uint32_t tail;           /* where values or page numbers begin */
    uint8_t is_leaf;
};

/* What a path page says of itself. */
struct path {
    uint32_t height, lowest, levels;
    uint32_t root;           /* the page that a bare commit names */
    uint32_t sections, sections_end; /* the same where there are none */
    uint32_t sizes;          /* where the sizes of its nodes stand */
    uint32_t leaf;
};

static int path_page(nr_reader *r, uint32_t page, struct path *t)
{
    TRY(load(r, page));
    uint32_t end = r->config->page_size, at = r->body;
    const uint8_t *h = r->buffer, *b = h + at;
    uint32_t height = b[0], lowest = b[1], levels = b[2], locator = b[8];
    int has_root = !levels || lowest + levels == height;
    if (r->kind != KIND_COMMIT && r->kind != KIND_NODE) return NR_CORRUPT;
    if (lowest >= height || height > HEIGHT_MAX || lowest + levels > height) return NR_CORRUPT;
    if (r->kind == KIND_COMMIT ? !has_root : !levels) return NR_CORRUPT;
    if (b[3] != CELLS_FIXED && b[3] != CELLS_BYTES) return NR_UNSUPPORTED;
    t->height = height;
    t->lowest = lowest;
    t->levels = levels;
    t->root = NONE;
    t->sizes = at + 10;
    at = t->sizes + 2 * levels;
    for (uint32_t i = lowest ? 0 : 1; i < levels; i++) {
        uint32_t size = le16(h + t->sizes + 2 * i);
        if (size > end - at) return NR_CORRUPT;
        end -= size;
    }
    if (has_root) {
        if (end - at < 12) return NR_CORRUPT;
        t->root = le32(h + at + 8);
        at += 12;
    }
    if ((t->root != NONE) != !levels || locator > end - at) return NR_CORRUPT;
    at += locator;
    t->leaf = at;
    if (!lowest && levels) {
        uint32_t size = le16(h + t->sizes);
        if (size > end - at) return NR_CORRUPT;
        at += size;
    }
    t->sections = at;
    t->sections_end = r->kind == KIND_COMMIT && b[9] ? end : at;
    /* All pages of a tree have the cells of its newest commit. */
    if (r->cells && (r->cells != b[3] || r->key_size != b[4] || r->page_bits != b[5] || r->value_size != le16(b + 6)))
        return NR_CORRUPT;
    r->cells = b[3];
    r->key_size = b[4];
    r->page_bits = b[5];
    r->value_size = le16(b + 6);
    if ((r->cells == CELLS_FIXED) != (r->key_size > 0)) return NR_CORRUPT;
    return r->page_bits && r->page_bits <= 32 ? NR_OK : NR_CORRUPT;
}

/* Where a section of a commit is; returns its size, or NR_NOT_FOUND. */
static int section(nr_reader *r, uint32_t page, uint32_t kind, uint32_t *at)
{
    struct path t;
    TRY(path_page(r, page, &t));
    const uint8_t *h = r->buffer;
    uint32_t p = t.sections;
    while (t.sections_end - p >= 4 && h[p] != 0xFF) {
        uint32_t size = le16(h + p + 2);
        p += 4;
        if (size > t.sections_end - p) return NR_CORRUPT;
        *at = p;
        if (h[p - 4] == kind) return (int)size;
        p += size;
    }
    return NR_NOT_FOUND;
}

/* End `i` of the heap of a node whose keys have any length; it counts from the begin of the heap. */
static uint32_t heap_end(const struct node *n, uint32_t i)
{
    const uint8_t *p = n->b + n->ends + i * n->end_size;
    return n->end_size == 1 ? p[0] : le16(p);
}

static int node_of(nr_reader *r, uint32_t page, uint32_t level, struct node *n)
{
    struct path t;
    TRY(path_page(r, page, &t));
    if (level < t.lowest || level >= t.lowest + t.levels) return NR_CORRUPT;
    clear(n, sizeof *n);
    n->is_leaf = !level;
    uint32_t at = t.leaf;
    if (level) {
        at = r->config->page_size;
        for (uint32_t i = t.levels; i-- > level - t.lowest;) at -= le16(r->buffer + t.sizes + 2 * i);
    }
    n->b = r->buffer + at;
    n->size = le16(r->buffer + t.sizes + 2 * (level - t.lowest));
    uint32_t front = level ? 4 : 2;
    if (n->size < front + 2) return n->size == 3 && !level ? NR_OK : NR_CORRUPT;
    n->count = n->keys = le16(n->b);
    if (level) {
        if (!n->count) return NR_CORRUPT;
        n->keys--;
    }
    if (r->cells == CELLS_BYTES) {
        n->prefix_size = n->b[front++];
        n->end_size = 2;
        if (level) n->end_size = n->b[front++];
        if (n->end_size != 1 && n->end_size != 2) return NR_CORRUPT;
        n->ends = front;
        n->prefix = front + n->keys * n->end_size;
        n->heap = n->prefix + n->prefix_size;
        if (n->heap > n->size) return NR_CORRUPT;
        n->tail = n->heap + (n->keys ? heap_end(n, n->keys - 1) : 0);
    } else {
        n->width = n->b[front++];
        if (level) n->shift = n->b[front++];
        n->base = front;
        n->column = front + r->key_size;
        if (n->width + n->shift > 8u * r->key_size) return NR_CORRUPT;
        n->tail = n->column + (n->keys * n->width + 7) / 8;
    }
    uint32_t rest = level ? (n->count * r->page_bits + 7) / 8 : r->cells == CELLS_FIXED ? n->count * r->value_size : 0;
    return n->tail <= n->size && rest <= n->size - n->tail ? NR_OK : NR_CORRUPT;
}

/* Writes key or separator `i` of a node to r->key; returns its size. */
static int key_of(nr_reader *r, const struct node *n, uint32_t i)
{
    uint8_t *key = r->key;
    if (r->cells == CELLS_FIXED) {
        uint32_t carry = 0;
        clear(key, r->key_size);
        for (uint32_t j = 0; j < n->width; j++) {
            uint32_t to = j + n->shift;
            if (bits(n->b + n->column, i * n->width + j, 1)) key[r->key_size - 1 - to / 8] |= (uint8_t)(1u << to % 8);
        }
        for (uint32_t j = r->key_size; j-- > 0;) {
            carry += (uint32_t)key[j] + n->b[n->base + j];
            key[j] = (uint8_t)carry;
            carry >>= 8;
        }
        return r->key_size;
    }
    uint32_t from = n->heap + (i ? heap_end(n, i - 1) : 0), to = n->heap + heap_end(n, i);
    if (from > to || to > n->size) return NR_CORRUPT;
    uint32_t size = to - from;
    if (n->is_leaf) {
        if (!size || n->b[from] >= size) return NR_CORRUPT;
        size = n->b[from++];
    }
    if (n->prefix_size + size > NR_KEY_MAX) return NR_CORRUPT;
    copy(key, n->b + n->prefix, n->prefix_size);
    copy(key + n->prefix_size, n->b + from, size);
    return (int)(n->prefix_size + size);
}

/* How many keys of a node are below this one, or, if `beyond`, not above it. */
static int rank(nr_reader *r, const struct node *n, const uint8_t *key, uint32_t size, int beyond)
{
    uint32_t low = 0, high = n->keys;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int found = key_of(r, n, middle);
        if (found < 0) return found;
        if (compare(r->key, (uint32_t)found, key, size) < beyond) low = middle + 1;
        else high = middle;
    }
    return (int)low;
}

/* The leaf for a key. What it holds from r->bound on is not its own any more; where r->bound_size is negative it has no bound. */
static int descend(nr_reader *r, const uint8_t *key, uint32_t size, uint32_t *leaf_page, struct node *n)
{
    uint32_t page = r->root;
    r->bound_size = -1;
    for (uint32_t level = r->height - 1u; level; level--) {
        TRY(node_of(r, page, level, n));
        int i = rank(r, n, key, size, 1);
        if (i < 0) return i;
        if ((uint32_t)i < n->keys) {
            int bound = key_of(r, n, (uint32_t)i);
            if (bound < 0) return bound;
            copy(r->bound, r->key, (uint32_t)bound);
            r->bound_size = bound;
        }
        uint32_t child = bits(n->b + n->tail, (uint32_t)i * r->page_bits, r->page_bits);
        if (child != NONE >> (32 - r->page_bits)) page = child;
    }
    *leaf_page = page;
    return node_of(r, page, 0, n);
}

/* ---- changes that wait ---- */

struct changes {
    uint32_t at, end;
};

struct change {
    const uint8_t *key;
    uint32_t key_size, kind, value, value_size;
};

/* A filter tells of most keys that a commit lists no change of them. */
static int filter(uint8_t *f, const uint8_t *key, uint32_t size, int add)
{
    uint32_t h = xxh32(key, size);
    uint8_t *cell = &f[(h >> 3) % NR_FILTER];
    if (add) *cell |= (uint8_t)(1u << (h & 7));
    return *cell >> (h & 7) & 1;
}

/* What a commit lists. */
static int changes_of(nr_reader *r, uint32_t page, struct changes *c)
{
    int size = section(r, page, SECTION_CHANGES, &c->at);
    if (size < 0) return size == NR_NOT_FOUND ? NR_CORRUPT : size;
    c->end = c->at + (uint32_t)size;
    return NR_OK;
}

/* Takes the next change; NR_NOT_FOUND behind the last. */
static int next_change(nr_reader *r, struct changes *c, struct change *x)
{
    const uint8_t *h = r->buffer;
    uint32_t at = c->at, end = c->end;
    if (at >= end) return NR_NOT_FOUND;
    x->kind = h[at++];
    if (x->kind > CHANGE_PUT && (x->kind != CHANGE_IN_LEAF || r->key_size)) return NR_CORRUPT;
    x->key_size = r->key_size;
    x->value_size = x->kind ? r->value_size : 0;
    if (!r->key_size) {
        if (end - at < (x->kind == CHANGE_PUT ? 3u : 1u)) return NR_CORRUPT;
        x->key_size = h[at++];
        if (x->kind == CHANGE_PUT) {
            x->value_size = le16(h + at);
            at += 2;
        }
    }
    x->key = h + at;
    x->value = at + x->key_size;
    if (x->value > end || x->value_size > end - x->value) return NR_CORRUPT;
    c->at = x->value + x->value_size;
    return NR_OK;
}

/* Keeps the address of a commit whose changes are needed, and what its filter says. */
static int remember(nr_reader *r, uint32_t page)
{
    struct changes c;
    struct change x;
    int more;
    uint8_t *f = r->filters[r->member_count];
    TRY(changes_of(r, page, &c));
    while (!(more = next_change(r, &c, &x))) {
        r->change_count++;
        filter(f, x.key, x.key_size, 1);
        if (x.key_size > PREFIX) filter(f, x.key, PREFIX, 1);
    }
    if (more != NR_NOT_FOUND) return more;
    r->members[r->member_count++] = page;
    return NR_OK;
}

/* Remembers the newest commit, if it lists changes, and those that it names; the newest first. */
static int remember_all(nr_reader *r)
{
    uint32_t at, pages[WINDOW_MAX];
    int size = section(r, r->commit, SECTION_CHANGES, &at);
    if (size >= 0) TRY(remember(r, r->commit));
    else if (size != NR_NOT_FOUND) return size;
    size = section(r, r->commit, SECTION_WINDOW, &at);
    if (size == NR_NOT_FOUND) return NR_OK;
    if (size < 0 || size % 4 || (uint32_t)size / 4 > WINDOW_MAX) return size < 0 ? size : NR_CORRUPT;
    uint32_t count = (uint32_t)size / 4;
    for (uint32_t i = 0; i < count; i++) pages[i] = le32(r->buffer + at + 4 * i);
    while (count--) TRY(remember(r, pages[count]));
    return NR_OK;
}

/* ---- records ---- */

static const uint8_t key_mark[3] = { 0xFF, 0x7F, 0x48 }, value_mark[3] = { 0x7F, 0x48, 0xD6 };

/* Whether a key is one of snapshots. */
static int is_reserved(const nr_reader *r, const uint8_t *key, uint32_t size)
{
    return !r->key_size && size >= RESERVED && !compare(key, 3, key_mark, 3) && key[3] >= SLOT_DIRECTORY && key[3] < SLOT_END;
}

/* How a large value is divided among pages. */
struct division {
    uint32_t payload; /* bytes of content in a page */
    uint32_t group;   /* pages of a full group; 1 where the head has the numbers of all */
    uint32_t size;    /* bytes of a full group */
    uint32_t heads;   /* page numbers in the head */
    uint32_t rest;    /* bytes of the value in the head */
};

/* Returns the size of the head, or 0 if no such value has pages. */
static uint32_t divide(const nr_reader *r, uint32_t key_size, uint32_t length, struct division *d)
{
    uint32_t page = r->config->page_size, room = page - r->body, used = 16 + key_size;
    /* What key and value of a record take together, at most: a quarter of what the highest tree leaves. */
    uint32_t levels = room < 1024 ? 5 : 8, key_max = room < 1024 ? room / 16 : room / 8 < NR_KEY_MAX ? room / 8 : NR_KEY_MAX;
    uint32_t front = 22 + 2 * levels + key_max, most = room > front ? (room - front) / 4 : 0;
    if (key_size > most || used > room || !length || length > VALUE_MAX) return 0;
    d->payload = room - used;
    uint32_t group = d->payload / 6 < GROUP_MAX ? d->payload / 6 : GROUP_MAX;
    if (group < 2) return 0;
    for (int way = 0; way < 3; way++) {
        uint32_t rest = way ? 0 : REST_MAX;
        d->group = way < 2 ? 1 : group;
        d->size = d->group * d->payload - 4 * (d->group - 1);
        d->heads = length > rest ? (length - rest + d->size - 1) / d->size : 1;
        d->rest = length > d->heads * d->size ? length - d->heads * d->size : 0;
        uint32_t head = 8 + 4 * d->heads + d->rest;
        if (head <= most - key_size) return head;
    }
    return 0;
}

/* Understands what stands at a key: `size` bytes from `at` on in the page that is loaded. */
static int value_of(nr_reader *r, const uint8_t *key, uint32_t key_size, uint32_t at, uint32_t size, nr_value *v)
{
    const uint8_t *b = r->buffer + at;
    struct division d;
    v->kind = VALUE_HERE;
    v->page = r->loaded;
    v->offset = (uint16_t)at;
    v->size = size;
    if (r->key_size || size < 4 || compare(b, 3, value_mark, 3)) return NR_OK;
    if (is_reserved(r, key, key_size)) {
        if (size == 4 && b[3] == MARK_NOTHING) v->kind = VALUE_NOTHING;
        key += RESERVED;
        key_size -= RESERVED;
    }
    if (size < 12) return NR_OK;
    uint32_t length = le32(b + 4);
    if (r->is_raw) {
        if (size != 16 || (b[3] != MARK_RAW && b[3] != MARK_BLOB) || !length || length > r->config->page_size || !key_size
            || key_size > PREFIX)
            return NR_OK;
        v->kind = b[3] == MARK_RAW ? VALUE_RAW : VALUE_BLOB;
        v->check = le32(b + 12);
        /* All ones: the commit that lists it. */
        if (v->kind == VALUE_RAW || le32(b + 8) != NONE) v->page = le32(b + 8);
    } else {
        if (b[3] != MARK_PAGES || divide(r, key_size, length, &d) != size) return NR_OK;
        v->kind = VALUE_PAGES;
        v->check = xxh32(key, key_size);
        v->key_size = (uint8_t)key_size;
    }
    v->size = length;
    return NR_OK;
}

/* Finds a record of now; those of snapshots are among them. */
static int find(nr_reader *r, const uint8_t *key, uint32_t size, nr_value *v)
{
    uint32_t page;
    struct node n;
    clear(v, sizeof *v);
    /* What the newest commit lists of it counts. */
    for (uint32_t j = 0; j < r->member_count; j++) {
        struct changes c;
        struct change x;
        int more;
        if (!filter(r->filters[j], key, size, 0)) continue;
        TRY(changes_of(r, r->members[j], &c));
        while (!(more = next_change(r, &c, &x)))
            if (!compare(x.key, x.key_size, key, size)) break;
        if (more == NR_NOT_FOUND) continue;
        if (more < 0) return more;
        if (x.kind == CHANGE_IN_LEAF) break;
        return x.kind ? value_of(r, key, size, x.value, x.value_size, v) : NR_NOT_FOUND;
    }
    TRY(descend(r, key, size, &page, &n));
    int i = rank(r, &n, key, size, 0);
    if (i < 0) return i;
    if ((uint32_t)i >= n.count) return NR_NOT_FOUND;
    int key_size = key_of(r, &n, (uint32_t)i);
    if (key_size < 0) return key_size;
    if (compare(r->key, (uint32_t)key_size, key, size)) return NR_NOT_FOUND;
    uint32_t at = (uint32_t)(n.b - r->buffer), from = n.tail + (uint32_t)i * r->value_size, to = from + r->value_size;
    if (r->cells == CELLS_BYTES) {
        from = n.heap + (i ? heap_end(&n, (uint32_t)i - 1) : 0);
        to = n.heap + heap_end(&n, (uint32_t)i);
        from += 1u + n.b[from];
    }
    return value_of(r, key, size, at + from, to - from, v);
}

/* Writes the key to r->kept at which the snapshot in a slot keeps what stood at a key. */
static int keep(nr_reader *r, uint8_t slot, const uint8_t *key, uint32_t size)
{
    if (size + RESERVED > NR_KEY_MAX) return NR_LIMIT;
    copy(r->kept, key_mark, 3);
    r->kept[3] = slot;
    copy(r->kept + RESERVED, key, size);
    return (int)(size + RESERVED);
}

int nr_find(nr_reader *r, const void *wanted, size_t wanted_size, nr_value *v)
{
    const uint8_t *key = wanted;
    uint32_t size = (uint32_t)wanted_size;
    if (wanted_size > NR_KEY_MAX || (r->key_size && size != r->key_size)) return NR_LIMIT;
    if (is_reserved(r, key, size)) return NR_NOT_FOUND;
    /* What a snapshot has not kept, a younger one may have, or it stands there yet. */
    for (uint32_t i = 0; i < r->slot_count; i++) {
        int kept = keep(r, r->slots[i], key, size);
        if (kept < 0) return kept;
        int found = find(r, r->kept, (uint32_t)kept, v);
        if (found == NR_NOT_FOUND) continue;
        return !found && v->kind == VALUE_NOTHING ? NR_NOT_FOUND : found;
    }
    return find(r, key, size, v);
}

/* The next record of now, as nr_next; with `within`, of those keys alone that begin with as many bytes as a filter takes. */
static int step(nr_reader *r, uint8_t *key, uint32_t *key_size, int beyond, int within, nr_value *v)
{
    uint8_t prefix[PREFIX];
    uint32_t size = *key_size, page;
    if (within) copy(prefix, key, PREFIX);
    /* Only changes that wait can hide what leaves hold, each once. */
    for (uint32_t steps = r->change_count + 2; steps; steps--) {
        int near = -1, is_beyond = beyond;
        for (uint32_t j = 0; j < r->member_count; j++) {
            struct changes c;
            struct change x;
            int more;
            if (within && !filter(r->filters[j], prefix, PREFIX, 0)) continue;
            TRY(changes_of(r, r->members[j], &c));
            while (!(more = next_change(r, &c, &x))) {
                if (compare(x.key, x.key_size, key, size) < beyond) continue;
                if (near >= 0 && compare(x.key, x.key_size, r->near, (uint32_t)near) >= 0) continue;
                near = (int)x.key_size;
                copy(r->near, x.key, x.key_size);
            }
            if (more != NR_NOT_FOUND) return more;
        }
        /* From leaf to leaf, up to that. */
        for (uint32_t leaves = 0;; leaves++) {
            struct node n;
            if (leaves > r->page_count) return NR_CORRUPT;
            TRY(descend(r, key, size, &page, &n));
            int i = rank(r, &n, key, size, is_beyond), found = -1;
            if (i < 0) return i;
            if ((uint32_t)i < n.count) {
                found = key_of(r, &n, (uint32_t)i);
                if (found < 0) return found;
                if (compare(r->key, (uint32_t)found, key, size) < is_beyond) return NR_CORRUPT;
                if (r->bound_size >= 0 && compare(r->key, (uint32_t)found, r->bound, (uint32_t)r->bound_size) >= 0) found = -1;
            }
            if (found >= 0) {
                if (near >= 0 && compare(r->key, (uint32_t)found, r->near, (uint32_t)near) >= 0) break;
                near = found;
                copy(r->near, r->key, (uint32_t)found);
                break;
            }
            if (r->bound_size < 0) break;
            if (near >= 0 && compare(r->near, (uint32_t)near, r->bound, (uint32_t)r->bound_size) < 0) break;
            /* Bounds rise; a tree where they do not is no tree. */
            if (compare(r->bound, (uint32_t)r->bound_size, key, size) <= 0) return NR_CORRUPT;
            size = (uint32_t)r->bound_size;
            copy(key, r->bound, size);
            is_beyond = 0;
            if (within && compare(key, size < PREFIX ? size : PREFIX, prefix, PREFIX) > 0) break;
        }
        if (near < 0) return NR_NOT_FOUND;
        size = *key_size = (uint32_t)near;
        copy(key, r->near, size);
        if (within && (size < PREFIX || compare(key, PREFIX, prefix, PREFIX))) return NR_NOT_FOUND;
        int found = find(r, key, size, v);
        if (found != NR_NOT_FOUND) return found;
        beyond = 1;
    }
    return NR_CORRUPT;
}

/* The same without records of snapshots. */
static int step_of_user(nr_reader *r, uint8_t *key, uint32_t *size, int beyond, int within, nr_value *v)
{
    int found = step(r, key, size, beyond, within, v);
    if (found || !is_reserved(r, key, *size)) return found;
    key[3] = SLOT_END;
    *size = RESERVED;
    return step(r, key, size, 0, within, v);
}

/* The same as the snapshot keeps it that is looked at: the nearest key of now, and those of which something was kept. */
static int next(nr_reader *r, uint8_t *key, uint32_t *key_size, int beyond, int within, nr_value *v)
{
    uint8_t prefix[PREFIX];
    if (!r->slot_count) return step_of_user(r, key, key_size, beyond, within, v);
    if (within) copy(prefix, key, PREFIX);
    for (;; beyond = 1) {
        int best = -1;
        for (uint32_t i = 0; i <= r->slot_count; i++) {
            uint32_t front = i < r->slot_count ? RESERVED : 0, size = *key_size;
            int found = keep(r, r->slots[i % NR_SLOTS], key, size);
            if (found < 0) return found;
            if (front) {
                size = (uint32_t)found;
                found = step(r, r->kept, &size, beyond, 0, v);
                if (!found && (size < RESERVED || compare(r->kept, 3, key_mark, 3) || r->kept[3] != r->slots[i]))
                    found = NR_NOT_FOUND;
            } else {
                copy(r->kept, key, size);
                found = step_of_user(r, r->kept, &size, beyond, within, v);
            }
            if (found == NR_NOT_FOUND) continue;
            if (found < 0) return found;
            size -= front;
            if (best >= 0 && compare(r->kept + front, size, r->best, (uint32_t)best) >= 0) continue;
            best = (int)size;
            copy(r->best, r->kept + front, size);
        }
        if (best < 0) return NR_NOT_FOUND;
        *key_size = (uint32_t)best;
        copy(key, r->best, (uint32_t)best);
        if (within && (best < (int)PREFIX || compare(key, PREFIX, prefix, PREFIX))) return NR_NOT_FOUND;
        int found = nr_find(r, key, (uint32_t)best, v);
        if (found != NR_NOT_FOUND) return found;
    }
}

int nr_next(nr_reader *r, void *key, size_t *key_size, int beyond, nr_value *v)
{
    uint32_t size = (uint32_t)*key_size;
    if (*key_size > NR_KEY_MAX) return NR_LIMIT;
    int found = next(r, key, &size, beyond != 0, 0, v);
    *key_size = size;
    return found;
}

/* ---- large values ---- */

/* Page `number` of a large value; says where its content is, and returns how large that is. */
static int value_page(nr_reader *r, uint32_t page, const nr_value *v, uint32_t number, uint32_t *content)
{
    TRY(load(r, page));
    const uint8_t *b = r->buffer + r->body;
    uint32_t size = le16(b + 12), end = r->config->page_size;
    *content = r->body + 16 + v->key_size;
    if (r->kind != KIND_VALUE || le32(b) != v->size || le32(b + 8) != number || b[14] != v->key_size || *content > end
        || size > end - *content || xxh32(b + 16, v->key_size) != v->check)
        return NR_CORRUPT;
    return (int)size;
}

/* The page with byte `offset` of a large value: where in it that byte is, and how many follow. */
static int large(nr_reader *r, const nr_value *v, uint32_t offset, uint32_t *at, uint32_t *left)
{
    struct division d;
    uint32_t content;
    TRY(load(r, v->page));
    if (!divide(r, v->key_size, v->size, &d)) return NR_CORRUPT;
    const uint8_t *numbers = r->buffer + v->offset + 8;
    if (offset >= v->size - d.rest) {
        *left = v->size - offset;
        *at = v->offset + 8 + 4 * d.heads + d.rest - *left;
        return NR_OK;
    }
    uint32_t group = offset / d.size, within = offset % d.size, pages = 1;
    uint32_t bytes = v->size - group * d.size < d.size ? v->size - group * d.size : d.size;
    if (d.group > 1 && bytes > d.payload) pages = (bytes - 4 + d.payload - 5) / (d.payload - 4);
    uint32_t place = within / d.payload < pages ? within / d.payload : pages - 1;
    uint32_t page = le32(numbers + 4 * group), first = group * d.group;
    /* The last page of a group, its leader, has the numbers of the others behind its bytes. */
    if (place + 1 < pages) {
        int size = value_page(r, page, v, first + pages - 1, &content);
        if (size < 0) return size;
        if ((uint32_t)size < 4 * (pages - 1)) return NR_CORRUPT;
        page = le32(r->buffer + content + (uint32_t)size - 4 * (pages - 1 - place));
    }
    int size = value_page(r, page, v, first + place, &content);
    if (size < 0) return size;
    uint32_t from = place * d.payload, to = bytes - from < d.payload ? bytes : from + d.payload;
    if (to - from > (uint32_t)size) return NR_CORRUPT;
    *at = content + (within - from);
    *left = to - within;
    return NR_OK;
}

/* Loads the page with byte `offset` of a value: where in it that byte is, and how many follow. */
static int part(nr_reader *r, const nr_value *v, uint32_t offset, uint32_t *at, uint32_t *left)
{
    if (v->kind == VALUE_PAGES) return large(r, v, offset, at, left);
    *at = v->offset;
    if (v->kind == VALUE_RAW) {
        *at = 0;
        TRY(load_raw(r, v->page, v->check));
    } else if (v->kind == VALUE_BLOB) {
        int size = section(r, v->page, SECTION_VALUE, at);
        if (size < 0 && size != NR_NOT_FOUND) return size;
        if (size != (int)v->size || xxh32(r->buffer + *at, v->size) != v->check) return NR_CORRUPT;
    } else {
        TRY(load(r, v->page));
    }
    *at += offset;
    *left = v->size - offset;
    return NR_OK;
}

int32_t nr_read(nr_reader *r, const nr_value *v, uint32_t offset, void *out, uint32_t size)
{
    uint8_t *to = out;
    uint32_t done = 0, at, left;
    if (offset >= v->size) return 0;
    if (size > v->size - offset) size = v->size - offset;
    if (size > 0x7FFFFFFF) size = 0x7FFFFFFF;
    while (done < size) {
        TRY(part(r, v, offset + done, &at, &left));
        if (left > size - done) left = size - done;
        copy(to + done, r->buffer + at, left);
        done += left;
    }
    return (int32_t)done;
}

/* ---- pages of files that their tags alone tell of ---- */

static uint32_t width_of(uint32_t n)
{
    uint32_t width = 0;
    while (n >> width && width < 32) width++;
    return width;
}

/*
 * The tagged pages behind the newest commit. Others between them are passed over; one that was left out ends them. They are fewer where
 * commits list changes.
 */
static int read_tail(nr_reader *r, const struct anchor *a)
{
    const nr_config *c = r->config;
    uint8_t tag[TAG_SIZE], under[36];
    uint32_t nth = a->tail_nth;
    if (!a->has_tags || a->tail_block >= c->block_count) return NR_OK;
    for (uint32_t place = 0; place + r->member_count < NR_TAIL_MAX && nth < nth_count(c); place++, nth++) {
        uint32_t page = nth_page(c, a->tail_block, nth);
        clear(tag, sizeof tag);
        if (fetch(r, page, tag) < 0) continue;
        nr_tail *t = &r->tail[r->tail_count];
        const uint32_t place_of[] = { r->volume, page, (uint32_t)a->tail_sequence, (uint32_t)(a->tail_sequence >> 32), place,
                                      crc32c(r->buffer, c->page_size) };
        for (uint32_t i = 0; i < 6; i++) put32(under + 4 * i, place_of[i]);
        copy(under + 24, tag + 4, 12);
        if (crc32c(under, sizeof under) != le32(tag)) {
            if (is_erased(tag, sizeof tag, 2) && is_erased(r->buffer, c->page_size, c->page_size / 64)) break;
            continue;
        }
        const uint8_t *said = tag + 8;
        uint32_t at = 10, left;
        t->check = xxh32(r->buffer, c->page_size);
        t->time_low = le32(tag + 4);
        t->time_high = bits(said, 0, at);
        t->end = bits(said, at, r->page_shift);
        at += r->page_shift;
        t->index = bits(said, at, width_of(r->page_count - 1));
        /* The lowest bit of the inode says whether it comes in place of a hole. */
        at += width_of(r->page_count - 1) + 1;
        left = 64 - at;
        t->inode = bits(said, at, left < 32 ? left : 32);
        if (left > 32) t->inode |= (uint64_t)bits(said, at + 32, left - 32) << 32;
        t->page = page;
        r->tail_count++;
    }
    return NR_OK;
}

/* ---- mounting ---- */

/* The root of the newest commit, and what waits. */
static int open_commit(nr_reader *r)
{
    struct path t;
    TRY(load(r, r->commit));
    r->limit = r->sequence;
    if (r->kind != KIND_COMMIT) return NR_CORRUPT;
    TRY(path_page(r, r->commit, &t));
    uint32_t height = t.height;
    r->height = (uint8_t)height;
    r->root = t.levels ? r->commit : t.root;
    TRY(path_page(r, r->root, &t));
    if (!t.levels || t.lowest + t.levels != height || t.height != height) return NR_CORRUPT;
    return remember_all(r);
}

static const uint8_t superblock_key[7] = { 0 };

/* The bytes of a record of the file system, in the page buffer. */
static int record(nr_reader *r, const nr_value *v, const uint8_t **b)
{
    if (v->kind != VALUE_HERE) return NR_CORRUPT;
    TRY(load(r, v->page));
    *b = r->buffer + v->offset;
    return NR_OK;
}

static int open_files(nr_reader *r)
{
    nr_value v;
    const uint8_t *b;
    if (r->cells != CELLS_BYTES) return NR_OK;
    int found = nr_find(r, superblock_key, sizeof superblock_key, &v);
    if (found == NR_NOT_FOUND) return NR_OK;
    if (found < 0) return found;
    if (v.kind != VALUE_HERE || v.size != 44) return NR_OK;
    TRY(record(r, &v, &b));
    if (b[0] != 'n' || b[1] != 'd' || b[2] != 'u' || b[3] != 'F') return NR_OK;
    if (b[4] != 1 || le32(b + 8)) return NR_UNSUPPORTED;
    copy(r->hash_key, b + 20, sizeof r->hash_key);
    r->is_files = 1;
    return NR_OK;
}

int nr_mount(nr_reader *r, const nr_config *c, void *buffer)
{
    struct anchor a;
    clear(r, sizeof *r);
    r->config = c;
    r->buffer = buffer;
    r->loaded = NONE;
    r->limit = ~(uint64_t)0;
    r->page_shift = (uint8_t)width_of(c->page_size - 1);
    if (c->page_size < 256 || c->page_size > 32768 || c->page_size != 1u << r->page_shift || c->pages_per_block < 4
        || c->pages_per_block > 4096 || !c->block_count || c->block_count > (NONE - 1) / c->pages_per_block)
        return NR_GEOMETRY;
    r->page_count = c->pages_per_block * c->block_count;
    TRY(read_anchor(r, &a));
    TRY(find_commit(r, &a));
    if (r->commit == NONE) return NR_NO_VOLUME;
    TRY(open_commit(r));
    TRY(read_tail(r, &a));
    return open_files(r);
}

int nr_snapshot(nr_reader *r, uint32_t number)
{
    uint8_t key[NR_KEY_MAX + 1], slots[NR_SLOTS];
    uint32_t numbers[NR_SLOTS], count = 0, size = RESERVED, is_there = 0;
    nr_value v;
    if (r->key_size) return NR_NOT_FOUND;
    copy(key, key_mark, 3);
    key[3] = SLOT_DIRECTORY;
    for (int beyond = 0;; beyond = 1) {
        int found = step(r, key, &size, beyond, 0, &v);
        if (found == NR_NOT_FOUND || (!found && (!is_reserved(r, key, size) || key[3] != SLOT_DIRECTORY))) break;
        if (found < 0) return found;
        if (size != RESERVED + 1 || key[4] <= SLOT_DIRECTORY || key[4] >= SLOT_END || v.kind != VALUE_HERE || v.size < 4
            || count == NR_SLOTS)
            return NR_CORRUPT;
        TRY(load(r, v.page));
        uint32_t other = le32(r->buffer + v.offset), i = count;
        if (other < number) continue;
        /* One that was released and not removed yet has its number only, and is needed for older ones. */
        if (other == number && v.size > 4) is_there = 1;
        for (count++; i && numbers[i - 1] > other; i--) {
            numbers[i] = numbers[i - 1];
            slots[i] = slots[i - 1];
        }
        numbers[i] = other;
        slots[i] = key[4];
    }
    if (!is_there) return NR_NOT_FOUND;
    copy(r->slots, slots, count);
    r->slot_count = (uint8_t)count;
    r->tail_count = 0;
    return NR_OK;
}

/* ---- files ---- */

enum { RECORD_INODE = 0x00, RECORD_NAME = 0x10, RECORD_PAGE = 0x20, RECORD_LINK = 0x40 };
enum { TYPE_DIRECTORY = 4, TYPE_FILE = 8, TYPE_LINK = 10 };
enum { INODE_MTIME = 1, INODE_ATIME = 2, INODE_BTIME = 4 };
enum { ROOT = 1 };

/* Begins a key: the inode, high byte first, and the kind of record. */
static void key_of_inode(uint8_t *key, uint64_t inode, uint8_t kind)
{
    for (int i = 6; i--; inode >>= 8) key[i] = (uint8_t)inode;
    key[6] = kind;
}

/* A number of seven bits a byte; moves on to what is behind it. */
static uint64_t number(const uint8_t **b, const uint8_t *end)
{
    uint64_t n = 0;
    const uint8_t *from = *b;
    while (*b < end && *b - from < 10 && *(*b)++ & 128) {}
    for (const uint8_t *p = *b; p-- > from;) n = n << 7 | (*p & 127);
    return n;
}

static void time_of(const uint8_t **b, const uint8_t *end, int64_t *seconds, uint32_t *nanoseconds)
{
    uint64_t n = number(b, end);
    *seconds = n & 1 ? -(int64_t)(n >> 1) - 1 : (int64_t)(n >> 1);
    *nanoseconds = (uint32_t)number(b, end);
}

int nr_open_inode(nr_reader *r, uint64_t inode, nr_file *f)
{
    uint8_t key[7];
    nr_value v;
    const uint8_t *b;
    clear(f, sizeof *f);
    if (!r->is_files) return NR_TYPE;
    key_of_inode(key, inode, RECORD_INODE);
    TRY(nr_find(r, key, sizeof key, &v));
    TRY(record(r, &v, &b));
    const uint8_t *end = b + v.size;
    if (b == end) return NR_CORRUPT;
    uint8_t flags = *b++;
    f->inode = inode;
    f->mode = (uint32_t)number(&b, end);
    f->uid = (uint32_t)number(&b, end);
    f->gid = (uint32_t)number(&b, end);
    f->nlink = (uint32_t)number(&b, end);
    f->size = number(&b, end);
    number(&b, end); /* blocks */
    time_of(&b, end, &f->ctime_s, &f->ctime_ns);
    f->mtime_s = f->ctime_s;
    f->mtime_ns = f->ctime_ns;
    if (flags & INODE_MTIME) time_of(&b, end, &f->mtime_s, &f->mtime_ns);
    for (uint32_t i = 0; i < r->tail_count; i++) {
        const nr_tail *t = &r->tail[i];
        if (t->inode != inode) continue;
        uint64_t size = ((uint64_t)t->index << r->page_shift) + t->end + 1;
        if (size > f->size) f->size = size;
        /* Milliseconds of 42 bits, divided in two parts, since a division of 64 bits takes a library. */
        uint32_t high = t->time_high << 12 | t->time_low >> 20, low = (high % 1000) << 20 | (t->time_low & 0xFFFFF);
        f->ctime_s = f->mtime_s = ((int64_t)(high / 1000) << 20) + low / 1000;
        f->ctime_ns = f->mtime_ns = low % 1000 * 1000000;
    }
    return NR_OK;
}

#define ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

/* SipHash-2-4. */
static uint64_t hash_of(const uint8_t *key, const uint8_t *b, uint32_t size)
{
    uint64_t k0 = le64(key), k1 = le64(key + 8);
    uint64_t v[4] = { k0 ^ 0x736F6D6570736575u, k1 ^ 0x646F72616E646F6Du, k0 ^ 0x6C7967656E657261u, k1 ^ 0x7465646279746573u };
    for (uint32_t at = 0, rounds = 2;; at += 8) {
        uint64_t m = 0;
        if (at > size) {
            v[2] ^= 0xFF;
            rounds = 4;
        } else {
            for (uint32_t i = 8; i--;) m = m << 8 | (at + i < size ? b[at + i] : i == 7 ? (uint8_t)size : 0);
        }
        v[3] ^= m;
        for (uint32_t i = 0; i < rounds; i++) {
            v[0] += v[1]; v[1] = ROTATE(v[1], 13); v[1] ^= v[0]; v[0] = ROTATE(v[0], 32);
            v[2] += v[3]; v[3] = ROTATE(v[3], 16); v[3] ^= v[2];
            v[0] += v[3]; v[3] = ROTATE(v[3], 21); v[3] ^= v[0];
            v[2] += v[1]; v[1] = ROTATE(v[1], 17); v[1] ^= v[2]; v[2] = ROTATE(v[2], 32);
        }
        if (rounds == 4) return v[0] ^ v[1] ^ v[2] ^ v[3];
        v[0] ^= m;
    }
}

/* Understands the record of a name. */
static int name_of(nr_reader *r, const nr_value *v, uint8_t *type, uint64_t *inode, const uint8_t **name, uint32_t *size)
{
    TRY(record(r, v, name));
    const uint8_t *end = *name + v->size;
    if (!v->size) return NR_CORRUPT;
    *type = *(*name)++;
    *inode = number(name, end);
    *size = (uint32_t)(end - *name);
    return *size && *size <= NR_NAME_MAX ? NR_OK : NR_CORRUPT;
}

int nr_open(nr_reader *r, const char *path, nr_file *f)
{
    TRY(nr_open_inode(r, ROOT, f));
    for (const uint8_t *p = (const uint8_t *)path; *p;) {
        uint8_t key[NR_KEY_MAX], hash[5];
        uint32_t length = 0, size = 12;
        nr_value v;
        if (*p == '/') {
            p++;
            continue;
        }
        while (p[length] && p[length] != '/') length++;
        if (length > NR_NAME_MAX) return NR_LIMIT;
        if (f->mode >> 12 != TYPE_DIRECTORY) return NR_TYPE;
        uint64_t h = hash_of(r->hash_key, p, length) >> 24;
        for (int i = 5; i--; h >>= 8) hash[i] = (uint8_t)h;
        key_of_inode(key, f->inode, RECORD_NAME);
        copy(key + 7, hash, 5);
        for (int probes = 0;; probes++) {
            uint8_t type;
            uint64_t inode;
            const uint8_t *name;
            uint32_t name_size;
            TRY(next(r, key, &size, 1, 1, &v));
            if (size != 13 || compare(key + 7, 5, hash, 5) || probes > 255) return NR_NOT_FOUND;
            TRY(name_of(r, &v, &type, &inode, &name, &name_size));
            if (compare(name, name_size, p, length)) continue;
            TRY(nr_open_inode(r, inode, f));
            break;
        }
        p += length;
    }
    return NR_OK;
}

int nr_list(nr_reader *r, const nr_file *directory, nr_name *name)
{
    uint8_t key[NR_KEY_MAX], prefix[7];
    uint32_t size = 7;
    nr_value v;
    const uint8_t *b;
    if (directory->mode >> 12 != TYPE_DIRECTORY) return NR_TYPE;
    key_of_inode(key, directory->inode, RECORD_NAME);
    copy(prefix, key, 7);
    if (name->is_begun) {
        copy(key + 7, name->place, 6);
        size = 13;
    }
    TRY(next(r, key, &size, 1, 0, &v));
    if (size != 13 || compare(key, 7, prefix, 7)) return NR_NOT_FOUND;
    copy(name->place, key + 7, 6);
    name->is_begun = 1;
    TRY(name_of(r, &v, &name->type, &name->inode, &b, &size));
    copy(name->name, b, size);
    name->name[size] = 0;
    return NR_OK;
}

/* A stretch of a page of a file that somebody wants. */
struct wanted {
    uint8_t *out;
    uint32_t from, to;
};

/* Puts bytes that lie from `at` on in the page to where they are wanted; zeros where `b` is null. */
static void lay(const struct wanted *w, uint32_t at, const uint8_t *b, uint32_t size)
{
    uint32_t from = at > w->from ? at : w->from, to = at + size < w->to ? at + size : w->to;
    if (from >= to) return;
    if (b) copy(w->out + (from - w->from), b + (from - at), to - from);
    else clear(w->out + (from - w->from), to - from);
}

static int read_page(nr_reader *r, uint64_t inode, uint32_t index, const struct wanted *w)
{
    uint8_t key[NR_KEY_MAX];
    uint32_t size = PREFIX, at, left;
    nr_value v;
    const uint8_t *b;
    lay(w, 0, 0, NONE >> 1);
    for (uint32_t i = r->tail_count; i--;) {
        const nr_tail *t = &r->tail[i];
        if (t->inode != inode || t->index != index) continue;
        TRY(load_raw(r, t->page, t->check));
        lay(w, 0, r->buffer, r->config->page_size);
        return NR_OK;
    }
    key_of_inode(key, inode, RECORD_PAGE);
    for (int i = 4; i--;) key[7 + i] = (uint8_t)(index >> 8 * (3 - i));
    int found = nr_find(r, key, size, &v);
    if (found < 0 && found != NR_NOT_FOUND) return found;
    if (!found && v.kind == VALUE_HERE) {
        TRY(record(r, &v, &b));
        if (v.size >= 3 && b[0] == 1) lay(w, le16(b + 1), b + 3, v.size - 3);
        else if (v.size != 1 || b[0] != 2) return NR_CORRUPT;
    } else if (!found) {
        TRY(part(r, &v, 0, &at, &left));
        lay(w, 0, r->buffer + at, left);
    }
    for (int count = 0;; count++) {
        found = next(r, key, &size, 1, 1, &v);
        if (found == NR_NOT_FOUND) return NR_OK;
        if (count == FRAGMENTS_MAX) return NR_CORRUPT;
        if (found < 0) return found;
        if (size != 13) return NR_CORRUPT;
        TRY(record(r, &v, &b));
        at = (uint32_t)key[11] << 8 | key[12];
        if (v.size && b[0] == 0) lay(w, at, b + 1, v.size - 1);
        else if (v.size == 3 && b[0] == 1) lay(w, at, 0, le16(b + 1));
        else return NR_CORRUPT;
    }
}

int32_t nr_file_read(nr_reader *r, const nr_file *f, uint64_t offset, void *out, uint32_t size)
{
    uint32_t page_size = r->config->page_size, done = 0;
    if (f->mode >> 12 != TYPE_FILE) return NR_TYPE;
    if (offset >= f->size) return 0;
    if (size > 0x7FFFFFFF) size = 0x7FFFFFFF;
    if (size > f->size - offset) size = (uint32_t)(f->size - offset);
    while (done < size) {
        uint64_t index = (offset + done) >> r->page_shift;
        struct wanted w;
        w.out = (uint8_t *)out + done;
        w.from = (uint32_t)(offset + done) & (page_size - 1);
        w.to = size - done < page_size - w.from ? w.from + (size - done) : page_size;
        if (index >= NONE) lay(&w, 0, 0, NONE >> 1);
        else TRY(read_page(r, f->inode, (uint32_t)index, &w));
        done += w.to - w.from;
    }
    return (int32_t)done;
}

int32_t nr_readlink(nr_reader *r, const nr_file *f, char *out, uint32_t size)
{
    uint8_t key[8];
    uint32_t done = 0;
    if (f->mode >> 12 != TYPE_LINK) return NR_TYPE;
    key_of_inode(key, f->inode, RECORD_LINK);
    for (key[7] = 0; done < f->size; key[7]++) {
        nr_value v;
        TRY(nr_find(r, key, sizeof key, &v));
        if (!v.size) return NR_CORRUPT;
        if (v.size > size - done) return NR_LIMIT;
        TRY(nr_read(r, &v, 0, out + done, v.size));
        done += v.size;
    }
    return (int32_t)done;
}
