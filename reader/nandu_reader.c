/*
 * nandu_reader: see nandu_reader.h. The words are those of FORMAT.md.
 *
 * Nothing is kept of what can be read again: one page is in memory at a time, and what waits in journal pages is looked for
 * there. All numbers of the flash are checked where they are used, against the page or against the chip.
 *
 * SPDX-License-Identifier: MIT
 */
#include "nandu_reader.h"

#define NONE 0xFFFFFFFFu
#define HEADER_SIZE 36u
#define HEIGHT_MAX 8u
#define STREAMS_MAX 8u
#define READY_MAX 14u
#define OLDER_MAX 30u
#define TAG_SIZE 16u
#define FRAGMENTS_MAX 17
#define PREFIX 11u /* keys that begin alike so far are looked for together: an inode, a kind and four bytes more */
#define ANCHORS 4u

enum { KIND_ANCHOR = 1, KIND_TABLE, KIND_TREE, KIND_VALUE, KIND_JOURNAL = 8, KIND_INDEX, KIND_SNAPSHOTS, KIND_NOTES };
enum { FLAG_COMMIT = 1 };
enum { CELLS_FIXED = 1, CELLS_BYTES = 2 };
enum { FEATURE_BARE = 1, FEATURE_TWO_BITS = 2, FEATURE_TAGS = 16 };
/* Of a value: what its tag in a leaf says; or that it is a resident one, and where it is was found out. */
enum { VALUE_HERE = 0, VALUE_PAGES = 1, VALUE_RESIDENT = 2, VALUE_PAGE = 3, VALUE_MOVED_IN = 4 };

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

/* CRC-32C, four bits at a time; begins with 0. */
static uint32_t crc32c(uint32_t crc, const uint8_t *b, uint32_t size)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
        0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
    };
    crc = ~crc;
    while (size--) {
        crc ^= *b++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
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
    if (b[4] != 'n' || b[5] != 'd' || le32(b + 16) != page || b[34] < 2 || b[34] > STREAMS_MAX) return NR_CORRUPT;
    if (!r->any_volume && le32(b + 20) != r->volume) return NR_CORRUPT;
    if (crc32c(0, b + 4, r->config->page_size - 4) != le32(b)) return NR_CORRUPT;
    if (b[6] != 1 || b[35]) return NR_UNSUPPORTED;
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

/* The same, if the page has this kind. */
static int load_kind(nr_reader *r, uint32_t page, uint8_t kind)
{
    TRY(load(r, page));
    return r->kind == kind ? NR_OK : NR_CORRUPT;
}

static int load_bare(nr_reader *r, uint32_t page, uint32_t crc)
{
    TRY(fetch(r, page, 0));
    return crc32c(0, r->buffer, r->config->page_size) == crc ? NR_OK : NR_CORRUPT;
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

/* 0: a page with header; 1: erased; or an error. A few bits of an erased page may have flipped. */
static int probe(nr_reader *r, uint32_t page)
{
    int result = fetch(r, page, 0);
    if (result < 0) return result;
    result = accept(r, page);
    if (result < 0) {
        uint32_t zeros = 0;
        for (uint32_t i = 0; i < r->config->page_size; i++)
            for (uint8_t x = (uint8_t)~r->buffer[i]; x; x &= (uint8_t)(x - 1)) zeros++;
        if (zeros <= r->config->page_size / 64) return 1;
    }
    return result;
}

/*
 * The last page with a header of a block, from its page `from` on, with a sequence above `above`; NONE if there is none. It
 * is loaded then. Pages are programmed in order, so the end is found by bisection, and behind what counts may be a page that
 * was torn.
 */
static uint32_t last_page(nr_reader *r, uint32_t block, uint32_t from, uint64_t above, uint8_t kind)
{
    const nr_config *c = r->config;
    uint32_t low = from, high = nth_count(c);
    if (block >= c->block_count) return NONE;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (probe(r, nth_page(c, block, middle)) == 1) high = middle;
        else low = middle + 1;
    }
    while (high > from) {
        uint32_t page = nth_page(c, block, --high);
        if (load(r, page) < 0) continue;
        if (r->sequence <= above) return NONE;
        if (!kind || r->kind == kind) return page;
    }
    return NONE;
}

struct anchor {
    uint64_t sequence;
    uint32_t page;
    uint32_t committed; /* the newest commit that is of this checkpoint, once that was looked for */
    uint32_t checkpoint;
    uint32_t streams, bare, ready;
    uint32_t head_blocks[STREAMS_MAX];
    uint32_t head_pages[STREAMS_MAX];
    uint32_t ready_blocks[READY_MAX];
    uint32_t tail_page, tail_flags;
    uint64_t tail_sequence;
    uint8_t has_tail;
};

/* Takes the newest anchor of a block if it is newer than the one known, by its sequence. */
static void look_for_anchor(nr_reader *r, struct anchor *a, uint32_t block)
{
    /* If the first page was torn or decayed, the rest of the block may be sound. */
    int first = NR_CORRUPT;
    for (uint32_t nth = 0; nth < 2 && first < 0; nth++) first = probe(r, nth_page(r->config, block, nth));
    if (first || (r->kind != KIND_ANCHOR && r->kind != KIND_TABLE)) return;
    uint32_t page = last_page(r, block, 0, a->sequence, KIND_ANCHOR);
    if (page == NONE) return;
    a->page = page;
    a->sequence = r->sequence;
}

/*
 * The newest anchor. Anchor blocks are the first good ones of the chip: where one is, the others are behind it, and where bad blocks
 * drove them apart it names them.
 */
static int find_anchor(nr_reader *r, struct anchor *a)
{
    const nr_config *c = r->config;
    uint32_t block = 0, named[ANCHORS];
    a->page = NONE;
    a->sequence = 0;
    r->any_volume = 1;
    for (uint32_t seen = 0; block < c->block_count && seen < ANCHORS; block++) {
        look_for_anchor(r, a, block);
        seen += a->page != NONE;
    }
    if (a->page == NONE) return NR_NO_VOLUME;
    TRY(load(r, a->page));
    for (uint32_t i = 0; i < ANCHORS; i++) named[i] = le32(r->buffer + r->body + 24 + 4 * i);
    for (uint32_t i = 0; i < ANCHORS; i++)
        if (named[i] >= block && named[i] < c->block_count) look_for_anchor(r, a, named[i]);
    return load(r, a->page);
}

static int read_anchor(nr_reader *r, struct anchor *a)
{
    const nr_config *c = r->config;
    TRY(find_anchor(r, a));
    r->any_volume = 0;
    const uint8_t *h = r->buffer, *b = h + r->body;
    r->volume = le32(h + 20);
    a->committed = le32(h + 24);
    a->checkpoint = le32(h + 28);
    a->streams = h[34];
    if (le32(b + 12) != c->page_size || le32(b + 16) != c->pages_per_block || le32(b + 20) != c->block_count)
        return NR_GEOMETRY;
    uint32_t features = le32(b);
    if (features & ~(uint32_t)(FEATURE_BARE | FEATURE_TWO_BITS | FEATURE_TAGS) || b[41]) return NR_UNSUPPORTED;
    a->ready = b[43];
    a->bare = b[46];
    if (a->ready > READY_MAX || a->bare >= a->streams) return NR_CORRUPT;
    const uint8_t *p = b + 48;
    a->tail_page = NONE;
    a->tail_flags = 0;
    a->tail_sequence = 0;
    a->has_tail = (features & FEATURE_TAGS) != 0;
    if (a->has_tail) {
        a->tail_page = le32(p);
        a->tail_flags = le32(p + 4);
        a->tail_sequence = le64(p + 8);
        p += 16;
    }
    if ((uint32_t)(p - h) + 8 * a->streams + 4 * a->ready > c->page_size) return NR_CORRUPT;
    for (uint32_t i = 0; i < a->streams; i++, p += 8) {
        a->head_blocks[i] = le32(p);
        a->head_pages[i] = le16(p + 4);
    }
    for (uint32_t i = 0; i < a->ready; i++, p += 4) a->ready_blocks[i] = le32(p);
    return NR_OK;
}

/* The newest commit: rolls forward over all that was programmed since the anchor. */
static int find_commit(nr_reader *r, struct anchor *a)
{
    const nr_config *c = r->config;
    uint32_t newest = a->committed;
    uint64_t best = a->sequence, best_here = best;
    for (uint32_t i = 0; i < a->streams - a->bare + a->ready; i++) {
        uint32_t page, from = 0, block;
        if (i < a->streams - a->bare) {
            block = a->head_blocks[i];
            from = a->head_pages[i];
        } else {
            /* What was not opened, or was by a bare stream, does not begin with a newer page. */
            block = a->ready_blocks[i - (a->streams - a->bare)];
            if (block >= c->block_count) continue;
            int first = probe(r, nth_page(c, block, 0));
            if (first == NR_READ) first = load(r, nth_page(c, block, 1));
            if (first || r->sequence <= a->sequence) continue;
        }
        page = last_page(r, block, from, a->sequence, 0);
        if (page == NONE) continue;
        uint32_t commit = r->buffer[33] & FLAG_COMMIT ? page : le32(r->buffer + 24);
        if (r->sequence > best) {
            best = r->sequence;
            newest = commit;
        }
        /* A page of a later checkpoint is a mount's, which was cut before that checkpoint. */
        if (r->sequence > best_here && le32(r->buffer + 28) == a->checkpoint) {
            best_here = r->sequence;
            a->committed = commit;
        }
    }
    r->commit = newest;
    return newest == NONE ? NR_NO_VOLUME : NR_OK;
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

/* What a page of the tree says of itself. */
struct tree {
    uint32_t height, lowest, levels;
    uint32_t flags, table, journal;
    uint32_t sections, sections_end;
    uint32_t sizes;          /* where the sizes of its nodes stand */
    uint32_t leaf;
    uint64_t records;
};

static int tree_page(nr_reader *r, uint32_t page, struct tree *t)
{
    TRY(load_kind(r, page, KIND_TREE));
    uint32_t end = r->config->page_size, at = r->body;
    const uint8_t *h = r->buffer, *b = h + at;
    clear(t, sizeof *t);
    t->height = b[0];
    t->lowest = b[1];
    t->levels = b[2];
    if (!t->height || t->height > HEIGHT_MAX || !t->levels || t->lowest + t->levels > t->height) return NR_CORRUPT;
    if (b[3] != CELLS_FIXED && b[3] != CELLS_BYTES) return NR_UNSUPPORTED;
    uint32_t locator = b[8];
    t->sizes = at + 10;
    at = t->sizes + 2 * t->levels;
    for (uint32_t i = t->lowest ? 0 : 1; i < t->levels; i++) {
        uint32_t size = le16(h + t->sizes + 2 * i);
        if (size > end - at) return NR_CORRUPT;
        end -= size;
    }
    if (end - at < 16) return NR_CORRUPT;
    if (t->lowest + t->levels == t->height) {
        const uint8_t *p = h + at;
        t->records = le64(p);
        t->flags = p[8];
        t->table = p[9] | le16(p + 10) << 8 | (uint32_t)b[9] << 24;
        t->journal = le32(p + 12);
        at += 16;
    }
    if (locator > end - at) return NR_CORRUPT;
    at += locator;
    t->leaf = at;
    if (!t->lowest) {
        uint32_t size = le16(h + t->sizes);
        if (size > end - at) return NR_CORRUPT;
        at += size;
    }
    t->sections = at;
    t->sections_end = end;
    /* All pages of a tree have the cells of its root. */
    if (r->cells && (r->cells != b[3] || r->key_size != b[4] || r->page_bits != b[5] || r->value_size != le16(b + 6)))
        return NR_CORRUPT;
    r->cells = b[3];
    r->key_size = b[4];
    r->page_bits = b[5];
    r->value_size = le16(b + 6);
    return r->page_bits && r->page_bits <= 32 ? NR_OK : NR_CORRUPT;
}

/* End `i` of the heap of a node whose keys have any length; it counts from the begin of the heap. */
static uint32_t heap_end(const struct node *n, uint32_t i)
{
    const uint8_t *p = n->b + n->ends + i * n->end_size;
    return n->end_size == 1 ? p[0] : le16(p);
}

static int node_of(nr_reader *r, uint32_t page, uint32_t level, struct node *n)
{
    struct tree t;
    TRY(tree_page(r, page, &t));
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
    return n->tail + rest <= n->size ? NR_OK : NR_CORRUPT;
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

/* ---- changes that wait, in journal pages ---- */

struct changes {
    uint32_t at, end;        /* where the changes stand */
    uint32_t count;
    uint32_t older, older_count, base;
};

struct change {
    const uint8_t *key;
    uint32_t key_size, kind, value, value_size;
};

/* A filter tells of most keys that a journal page has no change of them. */
static int filter(uint8_t *f, const uint8_t *key, uint32_t size, int add)
{
    uint32_t h = crc32c(0, key, size);
    uint8_t *cell = &f[(h >> 3) % NR_FILTER];
    if (add) *cell |= (uint8_t)(1u << (h & 7));
    return *cell >> (h & 7) & 1;
}

static int changes_of(nr_reader *r, uint32_t page, struct changes *c)
{
    TRY(load(r, page));
    const uint8_t *h = r->buffer;
    uint32_t maps = 0;
    clear(c, sizeof *c);
    if (r->kind == KIND_JOURNAL) {
        const uint8_t *b = h + r->body;
        c->older_count = b[6];
        c->count = le16(b + 20);
        c->older = r->body + 24;
        c->end = r->config->page_size;
    } else {
        struct tree t;
        TRY(tree_page(r, page, &t));
        const uint8_t *b = h + t.sections;
        if (!(t.flags & 2) || t.sections_end - t.sections < 12 || b[0] != 1) return NR_CORRUPT;
        uint32_t size = le16(b + 2);
        if (size < 10 || size > t.sections_end - t.sections - 4) return NR_CORRUPT;
        c->base = le32(b + 4);
        c->count = le16(b + 8);
        c->older_count = b[10];
        maps = le16(b + 12);
        c->older = t.sections + 14;
        c->end = t.sections + 4 + size;
    }
    if (c->older_count > OLDER_MAX) return NR_CORRUPT;
    c->at = c->older;
    for (uint32_t i = 0; i < c->older_count; i++) {
        if (c->end - c->at < 8) return NR_CORRUPT;
        c->at += 8 + (le16(h + c->at + 4) + 7) / 8;
        if (c->at > c->end) return NR_CORRUPT;
    }
    c->at += maps;
    return c->at <= c->end ? NR_OK : NR_CORRUPT;
}

/* Takes the next change; NR_NOT_FOUND behind the last. */
static int next_change(nr_reader *r, struct changes *c, struct change *x)
{
    const uint8_t *h = r->buffer;
    if (!c->count) return NR_NOT_FOUND;
    c->count--;
    if (c->end - c->at < 4) return NR_CORRUPT;
    x->kind = h[c->at++];
    if (x->kind > 5 || x->kind == 2) return NR_CORRUPT;
    x->key_size = r->key_size ? r->key_size : h[c->at++];
    x->value_size = 0;
    if (x->kind) {
        x->value_size = r->value_size;
        if (r->cells == CELLS_BYTES) {
            x->value_size = le16(h + c->at);
            c->at += 2;
        }
    }
    x->key = h + c->at;
    x->value = c->at + x->key_size;
    if (x->value > c->end || x->value_size > c->end - x->value) return NR_CORRUPT;
    c->at = x->value + x->value_size;
    return NR_OK;
}

/* Keeps the address of a journal page, in the order of sequences, the newest first; and what its filter says. */
static int remember(nr_reader *r, uint32_t page)
{
    struct changes c;
    struct change x;
    uint32_t i = 0;
    TRY(changes_of(r, page, &c));
    while (i < r->journal_count && r->journal_sequences[i] > r->sequence) i++;
    if (i < r->journal_count && r->journal_pages[i] == page) return NR_OK;
    if (r->journal_count == NR_JOURNAL_MAX) return NR_CORRUPT;
    for (uint32_t j = r->journal_count++; j > i; j--) {
        r->journal_sequences[j] = r->journal_sequences[j - 1];
        r->journal_pages[j] = r->journal_pages[j - 1];
        copy(r->filters[j], r->filters[j - 1], NR_FILTER);
    }
    r->journal_sequences[i] = r->sequence;
    r->journal_pages[i] = page;
    clear(r->filters[i], NR_FILTER);
    r->change_count += c.count;
    while (c.count) {
        TRY(next_change(r, &c, &x));
        filter(r->filters[i], x.key, x.key_size, 1);
        if (x.key_size > PREFIX) filter(r->filters[i], x.key, PREFIX, 1);
    }
    return NR_OK;
}

/* Remembers a journal page and those that it names. */
static int remember_all(nr_reader *r, uint32_t page)
{
    for (int depth = 0; depth < 2; depth++) {
        struct changes c;
        uint32_t older[OLDER_MAX];
        TRY(remember(r, page));
        TRY(changes_of(r, page, &c));
        for (uint32_t i = 0, at = c.older; i < c.older_count; i++) {
            older[i] = le32(r->buffer + at);
            at += 8 + (le16(r->buffer + at + 4) + 7) / 8;
        }
        for (uint32_t i = 0; i < c.older_count; i++) TRY(remember(r, older[i]));
        if (!c.base) return NR_OK;
        page = c.base - 1;
    }
    return NR_CORRUPT;
}

/* ---- records ---- */

/* Understands what a leaf holds beside a key: `size` bytes from `at` on in the page that is loaded, a tag before them. */
static int value_of(nr_reader *r, uint8_t tag, uint32_t at, uint32_t size, nr_value *v)
{
    const uint8_t *b = r->buffer + at;
    v->kind = tag;
    v->page = r->loaded;
    v->offset = (uint16_t)at;
    v->size = size;
    if (tag == VALUE_HERE) return NR_OK;
    if (tag == VALUE_PAGE || tag == VALUE_RESIDENT) {
        if (size != (tag == VALUE_PAGE ? 8 : 6)) return NR_CORRUPT;
        v->page = le32(b);
        v->size = le16(b + 4);
        if (tag == VALUE_PAGE) {
            v->check = le32(b + 4);
            v->offset = 0;
            v->size = r->config->page_size;
        }
        return NR_OK;
    }
    if (tag != VALUE_PAGES || size < 12 || size % 4) return NR_CORRUPT;
    v->size = le32(b);
    v->roots = (uint16_t)((size - 8) / 4);
    return NR_OK;
}

/* A resident value: finds it in its journal page. */
static int resident(nr_reader *r, const uint8_t *key, uint32_t size, nr_value *v)
{
    struct changes c;
    struct change x;
    TRY(changes_of(r, v->page, &c));
    while (c.count) {
        TRY(next_change(r, &c, &x));
        if (x.kind != 5 || compare(x.key, x.key_size, key, size)) continue;
        if (x.value_size != v->size) return NR_CORRUPT;
        TRY(value_of(r, VALUE_HERE, x.value, x.value_size, v));
        v->kind = VALUE_MOVED_IN;
        return NR_OK;
    }
    return NR_CORRUPT;
}

int nr_find(nr_reader *r, const void *wanted, size_t wanted_size, nr_value *v)
{
    const uint8_t *key = wanted;
    uint32_t size = (uint32_t)wanted_size, page;
    struct node n;
    int found = NR_NOT_FOUND;
    if (wanted_size > NR_KEY_MAX || (r->key_size && size != r->key_size)) return NR_LIMIT;
    clear(v, sizeof *v);
    TRY(descend(r, key, size, &page, &n));
    int i = rank(r, &n, key, size, 0);
    if (i < 0) return i;
    if ((uint32_t)i < n.count) {
        int key_size = key_of(r, &n, (uint32_t)i);
        if (key_size < 0) return key_size;
        if (!compare(r->key, (uint32_t)key_size, key, size)) {
            uint32_t at = (uint32_t)(n.b - r->buffer);
            if (r->cells == CELLS_FIXED) {
                found = value_of(r, VALUE_HERE, at + n.tail + (uint32_t)i * r->value_size, r->value_size, v);
            } else {
                uint32_t from = n.heap + (i ? heap_end(&n, (uint32_t)i - 1) : 0), to = n.heap + heap_end(&n, (uint32_t)i);
                from += 1u + n.b[from];
                if (from >= to) return NR_CORRUPT;
                found = value_of(r, n.b[from], at + from + 1, to - from - 1, v);
            }
            if (found < 0) return found;
        }
    }
    /* A change is obsolete if the page of its leaf has a higher sequence; of those that are not, the newest counts. */
    uint64_t leaf = r->sequence;
    for (uint32_t j = 0; j < r->journal_count && r->journal_sequences[j] > leaf; j++) {
        struct changes c;
        struct change x;
        int hit = 0;
        if (!filter(r->filters[j], key, size, 0)) continue;
        TRY(changes_of(r, r->journal_pages[j], &c));
        while (c.count && !hit) {
            TRY(next_change(r, &c, &x));
            if (compare(x.key, x.key_size, key, size)) continue;
            static const uint8_t tags[] = { 0, VALUE_HERE, 0, VALUE_RESIDENT, VALUE_PAGE, VALUE_HERE };
            hit = 1;
            found = NR_NOT_FOUND;
            if (!x.kind) continue;
            found = value_of(r, tags[x.kind], x.value, x.value_size, v);
            if (x.kind == 5) v->kind = VALUE_MOVED_IN;
        }
        if (hit) break;
    }
    if (found < 0) return found;
    if (v->kind == VALUE_RESIDENT) return resident(r, key, size, v);
    v->key_size = (uint8_t)size;
    if (v->kind == VALUE_PAGES) v->check = crc32c(0, key, size);
    return NR_OK;
}

/* As nr_next; with `within`, of those keys alone that begin with as many bytes as a filter takes. */
static int next(nr_reader *r, uint8_t *key, uint32_t *key_size, int beyond, int within, nr_value *v)
{
    uint8_t best[NR_KEY_MAX + 1], prefix[PREFIX];
    uint32_t size = *key_size, page;
    if (within) copy(prefix, key, PREFIX);
    /* Only changes that wait can hide what leaves hold, so as often as there are such, and twice for leaves that they empty. */
    for (uint32_t steps = 2 * r->change_count + 16; steps; steps--) {
        struct node n;
        int best_size = -1;
        TRY(descend(r, key, size, &page, &n));
        int i = rank(r, &n, key, size, beyond);
        if (i < 0) return i;
        if ((uint32_t)i < n.count) {
            best_size = key_of(r, &n, (uint32_t)i);
            if (best_size < 0) return best_size;
            if (r->bound_size >= 0 && compare(r->key, (uint32_t)best_size, r->bound, (uint32_t)r->bound_size) >= 0)
                best_size = -1;
            else
                copy(best, r->key, (uint32_t)best_size);
        }
        uint64_t leaf = r->sequence;
        for (uint32_t j = 0; j < r->journal_count && r->journal_sequences[j] > leaf; j++) {
            struct changes c;
            struct change x;
            if (within && !filter(r->filters[j], prefix, PREFIX, 0)) continue;
            TRY(changes_of(r, r->journal_pages[j], &c));
            while (c.count) {
                TRY(next_change(r, &c, &x));
                if (compare(x.key, x.key_size, key, size) < beyond) continue;
                if (r->bound_size >= 0 && compare(x.key, x.key_size, r->bound, (uint32_t)r->bound_size) >= 0) continue;
                if (best_size >= 0 && compare(x.key, x.key_size, best, (uint32_t)best_size) >= 0) continue;
                best_size = (int)x.key_size;
                copy(best, x.key, x.key_size);
            }
        }
        const uint8_t *go = best;
        beyond = 1;
        if (best_size < 0) {
            if (r->bound_size < 0) return NR_NOT_FOUND;
            /* Bounds rise; a tree where they do not is no tree. */
            if (compare(r->bound, (uint32_t)r->bound_size, key, size) <= 0) return NR_CORRUPT;
            go = r->bound;
            best_size = r->bound_size;
            beyond = 0;
        }
        size = *key_size = (uint32_t)best_size;
        copy(key, go, size);
        if (within && (size < PREFIX || compare(key, PREFIX, prefix, PREFIX))) return NR_NOT_FOUND;
        if (!beyond) continue;
        int found = nr_find(r, key, size, v);
        if (found != NR_NOT_FOUND) return found;
    }
    return NR_CORRUPT;
}

int nr_next(nr_reader *r, void *key, size_t *key_size, int beyond, nr_value *v)
{
    uint32_t size = (uint32_t)*key_size;
    if (*key_size > NR_KEY_MAX) return NR_LIMIT;
    int found = next(r, key, &size, beyond != 0, 0, v);
    *key_size = size;
    return found;
}

/* A page of a large value or of its index, number `number` of these; says where its content is. */
static int value_page(nr_reader *r, uint32_t page, uint8_t kind, const nr_value *v, uint32_t stamp, uint32_t number,
                      uint32_t *content)
{
    TRY(load_kind(r, page, kind));
    const uint8_t *b = r->buffer + r->body;
    uint32_t size = le16(b + 12);
    *content = r->body + 16 + v->key_size;
    if (le32(b) != v->size || le32(b + 4) != stamp || le32(b + 8) != number || b[14] != v->key_size
        || *content > r->config->page_size || size > r->config->page_size - *content
        || crc32c(0, b + 16, v->key_size) != v->check)
        return NR_CORRUPT;
    return (int)size;
}

/* The page with byte `offset` of a large value: where in it that byte is, and how many follow. */
static int large(nr_reader *r, const nr_value *v, uint32_t offset, uint32_t *at, uint32_t *left)
{
    TRY(load(r, v->page));
    const uint8_t *d = r->buffer + v->offset;
    uint32_t stamp = le32(d + 4), used = r->body + 16u + v->key_size, full = r->config->page_size - used, content;
    if (used + 4 > r->config->page_size) return NR_CORRUPT;
    /* Every page but the last is full, of a value and of its index. */
    uint32_t number = offset / full, root = number, of_index = full / 4;
    int has_index = (v->size - 1) / full >= 4;
    if (has_index) root = number / of_index;
    if (root >= v->roots) return NR_CORRUPT;
    uint32_t page = le32(d + 8 + 4 * root);
    if (has_index) {
        int size = value_page(r, page, KIND_INDEX, v, stamp, root, &content);
        if (size < 0) return size;
        if (4 * (number % of_index) + 4 > (uint32_t)size) return NR_CORRUPT;
        page = le32(r->buffer + content + 4 * (number % of_index));
    }
    int size = value_page(r, page, KIND_VALUE, v, stamp, number, &content);
    if (size < 0) return size;
    if (offset % full >= (uint32_t)size) return NR_CORRUPT;
    *at = content + offset % full;
    *left = (uint32_t)size - offset % full;
    return NR_OK;
}

/* Loads the page with byte `offset` of a value: where in it that byte is, and how many follow. */
static int part(nr_reader *r, const nr_value *v, uint32_t offset, uint32_t *at, uint32_t *left)
{
    if (v->kind == VALUE_PAGES) return large(r, v, offset, at, left);
    *at = v->offset + offset;
    *left = v->size - offset;
    return v->kind == VALUE_PAGE ? load_bare(r, v->page, v->check) : load(r, v->page);
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
 * The tagged pages behind the newest commit but for those of a mount that was cut. They begin where the anchor says, if it knows of them, else where
 * that commit left the stream. One that does not fit may be followed by one that does: then it decayed, and is passed over.
 */
static int read_tail(nr_reader *r, const struct anchor *a)
{
    const nr_config *c = r->config;
    uint32_t stream = a->streams - a->bare, block = NONE, nth = 0, missing = 0;
    uint8_t tag[TAG_SIZE], under[36];
    if (!a->has_tail || !a->bare || a->committed == NONE) return NR_OK;
    TRY(load(r, a->committed));
    uint64_t sequence = r->sequence;
    uint32_t position = le16(r->buffer + HEADER_SIZE + 2 * stream);
    if (a->tail_flags & 1 || a->tail_sequence == sequence) {
        sequence = a->tail_sequence;
        block = a->tail_page / c->pages_per_block;
        nth = a->tail_page % c->pages_per_block;
    } else if (le32(r->buffer + 28) == a->checkpoint) {
        uint32_t code = position >> 12;
        nth = (position & 0xFFF) + 1;
        if (code < a->ready) block = a->ready_blocks[code];
        if (code == 14) block = a->head_blocks[stream];
    }
    if (block >= c->block_count) return NR_OK;
    for (uint32_t place = 0; place < NR_TAIL_MAX && nth < c->pages_per_block && missing < 2; place++, nth++) {
        uint32_t page = block * c->pages_per_block + nth;
        missing++;
        clear(tag, sizeof tag);
        if (fetch(r, page, tag) < 0) continue;
        nr_tail *t = &r->tail[r->tail_count];
        t->check = crc32c(0, r->buffer, c->page_size);
        put32(under, r->volume);
        put32(under + 4, page);
        put32(under + 8, (uint32_t)sequence);
        put32(under + 12, (uint32_t)(sequence >> 32));
        put32(under + 16, place);
        put32(under + 20, t->check);
        copy(under + 24, tag + 4, 12);
        if (crc32c(0, under, sizeof under) != le32(tag)) continue;
        uint64_t owner = le64(tag + 8);
        uint32_t index_width = width_of(r->page_count - 1);
        t->time = le32(tag + 4) | (owner & 1023) << 32;
        owner >>= 10;
        t->end = (uint32_t)owner & (c->page_size - 1);
        owner >>= r->page_shift;
        t->index = (uint32_t)(owner & (((uint64_t)1 << index_width) - 1));
        t->inode = owner >> index_width;
        t->page = page;
        r->tail_count++;
        missing = 0;
    }
    return NR_OK;
}

/* ---- mounting ---- */

static int open_root(nr_reader *r)
{
    struct tree t;
    TRY(tree_page(r, r->root, &t));
    return t.lowest + t.levels == t.height && t.height == r->height ? NR_OK : NR_CORRUPT;
}

/* What the newest commit, which is loaded, says of the tree. */
static int open_commit(nr_reader *r, uint32_t page, uint32_t *journal)
{
    const uint8_t *b = r->buffer + r->body;
    struct tree t;
    *journal = 0;
    r->root = le32(b);
    r->records = le64(b + 4);
    r->height = b[12];
    switch (r->kind) {
    case KIND_TREE:
        TRY(tree_page(r, page, &t));
        r->root = page;
        r->records = t.records;
        r->height = (uint8_t)t.height;
        r->table = t.table;
        *journal = t.journal == NONE ? page + 1 : t.journal;
        return NR_OK;
    case KIND_JOURNAL:
        r->root = le32(b + 16);
        r->records = le64(b + 8);
        r->height = b[0];
        *journal = page + 1;
        return NR_OK;
    case KIND_SNAPSHOTS:
        r->table = page + 1;
        return NR_OK;
    case KIND_NOTES:
        *journal = le32(b + 16);
        return NR_OK;
    default:
        return NR_CORRUPT;
    }
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
    uint32_t journal;
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
    TRY(load(r, r->commit));
    if (!(r->buffer[33] & FLAG_COMMIT)) return NR_CORRUPT;
    r->limit = r->sequence;
    TRY(open_commit(r, r->commit, &journal));
    TRY(read_tail(r, &a));
    TRY(open_root(r));
    if (journal) TRY(remember_all(r, journal - 1));
    return open_files(r);
}

int nr_snapshot(nr_reader *r, uint32_t number)
{
    if (!r->table) return NR_NOT_FOUND;
    TRY(load_kind(r, r->table - 1, KIND_SNAPSHOTS));
    const uint8_t *b = r->buffer + r->body;
    uint32_t count = b[14];
    if (count > 8) return NR_CORRUPT;
    for (b += 20; count--; b += 20) {
        if (le32(b) != number) continue;
        r->root = le32(b + 4);
        r->records = le64(b + 8);
        r->height = b[16];
        r->journal_count = r->tail_count = 0;
        return open_root(r);
    }
    return NR_NOT_FOUND;
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
    for (uint32_t shift = 0; *b < end && shift < 64; shift += 7) {
        uint8_t x = *(*b)++;
        n |= (uint64_t)(x & 127) << shift;
        if (!(x & 128)) break;
    }
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
        /* Milliseconds; divided bit by bit, since a division of 64 bits takes a library. */
        uint64_t seconds = 0, rest = 0;
        for (int bit = 42; bit--;) {
            rest = rest << 1 | (t->time >> bit & 1);
            seconds <<= 1;
            if (rest >= 1000) {
                rest -= 1000;
                seconds |= 1;
            }
        }
        f->ctime_s = f->mtime_s = (int64_t)seconds;
        f->ctime_ns = f->mtime_ns = (uint32_t)rest * 1000000;
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
            for (uint32_t i = 0; i < 8 && at + i < size; i++) m |= (uint64_t)b[at + i] << 8 * i;
            if (size - at < 8) m |= (uint64_t)size << 56;
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
        TRY(load_bare(r, t->page, t->check));
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
