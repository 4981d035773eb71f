#include "ram_chip.h"

#include "check.h"

#define BAD_BLOCK 7u

static void fill(uint8_t *bytes, size_t size) {
    while (size-- > 0)
        *bytes++ = 0xff;
}

void ram_chip_make(ram_chip *ram) {
    fill(&ram->pages[0][0], sizeof ram->pages);
    for (unsigned block = 0; block < RAM_BLOCK_COUNT; block++)
        ram->next[block] = RAM_PAGES_PER_BLOCK; /* a block from the factory is erased before it is used */
    ram->pages[BAD_BLOCK * RAM_PAGES_PER_BLOCK][RAM_PAGE_SIZE] = 0;
    ram->programs = ram->waits = ram->cut_in = 0;
    ram->held = ram->taken = 0;
    ram->is_shared = ram->refuses = 0;
    ram->is_off = ram->is_begun = ram->intrusion = 0;
    ram->intruder = NULL;
}

/* Counts an operation; 1 if the power goes in the middle of it. */
static int is_cut(ram_chip *ram) {
    CHECK(!ram->is_begun && (ram->held > 0 || !ram->is_shared));
    ram->is_begun = 1;
    return ram->cut_in > 0 && --ram->cut_in == 0;
}

static int ram_read(void *context, uint32_t page, uint32_t column, void *data, uint32_t size) {
    ram_chip *ram = (ram_chip *)context;
    uint8_t *out = (uint8_t *)data;
    CHECK(ram->held > 0 || !ram->is_shared);
    CHECK(page < RAM_BLOCK_COUNT * RAM_PAGES_PER_BLOCK && column + size <= RAM_PAGE_SIZE + RAM_SPARE_SIZE);
    if (ram->intruder != NULL)
        ram->intrusion = nandu_store_sync(ram->intruder);
    if (ram->is_off)
        return NANDU_ERR_GONE;
    for (uint32_t at = 0; at < size; at++)
        out[at] = ram->pages[page][column + at];
    return 0;
}

static int program(ram_chip *ram, uint32_t page, uint32_t column, const uint8_t *data, uint32_t size) {
    const uint32_t block = page / RAM_PAGES_PER_BLOCK, index = page % RAM_PAGES_PER_BLOCK;
    CHECK(block < RAM_BLOCK_COUNT && block != BAD_BLOCK);
    const int cut = is_cut(ram);
    if (cut)
        size /= 2;
    for (uint32_t at = 0; at < size; at++)
        ram->pages[page][column + at] &= data[at];
    ram->next[block] = (uint16_t)(index + 1);
    ram->is_off |= cut;
    return ram->is_off ? NANDU_ERR_GONE : 0;
}

static int ram_program(void *context, uint32_t page, uint32_t column, const void *data, uint32_t size) {
    ram_chip *ram = (ram_chip *)context;
    if (ram->is_off)
        return NANDU_ERR_GONE;
    CHECK(column == 0 && size == RAM_PAGE_SIZE && page % RAM_PAGES_PER_BLOCK >= ram->next[page / RAM_PAGES_PER_BLOCK]);
    ram->programs++;
    return program(ram, page, 0, (const uint8_t *)data, size);
}

static int ram_program_tagged(void *context, uint32_t page, const void *data, const void *tag, uint32_t tag_size) {
    ram_chip *ram = (ram_chip *)context;
    const uint8_t *bytes = (const uint8_t *)tag;
    CHECK(tag_size <= RAM_TAG_SIZE);
    const int answer = ram_program(context, page, 0, data, RAM_PAGE_SIZE);
    for (uint32_t at = 0; at < tag_size && answer == 0; at++)
        ram->pages[page][RAM_PAGE_SIZE + 4 + at] &= bytes[at];
    return answer;
}

static int ram_erase(void *context, uint32_t block, int mode) {
    ram_chip *ram = (ram_chip *)context;
    if (ram->is_off)
        return NANDU_ERR_GONE;
    CHECK(block < RAM_BLOCK_COUNT && block != BAD_BLOCK && mode == NANDU_MODE_SLC);
    if (is_cut(ram)) {
        ram->is_off = 1;
        return NANDU_ERR_GONE;
    }
    fill(ram->pages[block * RAM_PAGES_PER_BLOCK], sizeof ram->pages[0] * RAM_PAGES_PER_BLOCK);
    ram->next[block] = 0;
    return 0;
}

static int ram_is_bad(void *context, uint32_t block) {
    ram_chip *ram = (ram_chip *)context;
    if (ram->is_off)
        return NANDU_ERR_GONE;
    return ram->pages[block * RAM_PAGES_PER_BLOCK][RAM_PAGE_SIZE] != 0xff;
}

static int ram_mark_bad(void *context, uint32_t block) {
    ram_chip *ram = (ram_chip *)context;
    static const uint8_t mark = 0;
    if (ram->is_off)
        return NANDU_ERR_GONE;
    return program(ram, block * RAM_PAGES_PER_BLOCK, RAM_PAGE_SIZE, &mark, 1);
}

static int ram_wait(void *context) {
    ram_chip *ram = (ram_chip *)context;
    CHECK(ram->is_begun);
    ram->is_begun = 0;
    ram->waits++;
    return 0;
}

static int ram_lock(void *context) {
    ram_chip *ram = (ram_chip *)context;
    if (ram->refuses != 0)
        return ram->refuses;
    ram->held++;
    ram->taken++;
    return 0;
}

static void ram_unlock(void *context) {
    ram_chip *ram = (ram_chip *)context;
    CHECK(ram->held > 0);
    ram->held--;
}

nandu_chip ram_chip_of(ram_chip *ram) {
    nandu_chip chip = {
        .geometry = {.page_size = RAM_PAGE_SIZE, .spare_size = RAM_SPARE_SIZE, .tag_size = RAM_TAG_SIZE,
            .pages_per_block = RAM_PAGES_PER_BLOCK, .block_count = RAM_BLOCK_COUNT, .bad_block_max = 3},
        .context = ram,
        .read = ram_read,
        .program = ram_program,
        .program_tagged = ram_program_tagged,
        .erase = ram_erase,
        .is_bad = ram_is_bad,
        .mark_bad = ram_mark_bad,
        .wait = ram_wait,
        .lock = ram->is_shared ? ram_lock : NULL,
        .unlock = ram->is_shared ? ram_unlock : NULL,
    };
    return chip;
}
