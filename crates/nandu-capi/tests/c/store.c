/* Stores: every call, and every call used wrongly. */
#include "api.h"
#include "check.h"

#define CACHE_SIZE 1024u
#define PENDING_SIZE 1024u

static uint64_t memory[(NANDU_STORE_MEMORY(RAM_PAGE_SIZE, RAM_BLOCK_COUNT, CACHE_SIZE, PENDING_SIZE) + 7u) / 8u];
static uint64_t other[(NANDU_STORE_MEMORY(RAM_PAGE_SIZE, RAM_BLOCK_COUNT, CACHE_SIZE, PENDING_SIZE) + 7u) / 8u];
static uint8_t large[7000];

static const nandu_store_options options = {.cache_size = CACHE_SIZE, .pending_size = PENDING_SIZE};

static int reports;

static void report(void *context, const char *text) {
    (void)context;
    (void)text;
    reports++;
}

static nandu_store *format(ram_chip *ram, uint64_t *at, size_t size) {
    nandu_store *store = NULL;
    ram_chip_make(ram);
    const nandu_chip chip = ram_chip_of(ram);
    stack_begin();
    EXPECT(nandu_store_format(&store, &chip, &options, at, size), 0);
    stack_end("format");
    CHECK(store != NULL);
    return store;
}

static void records(nandu_store *store) {
    char text[16];
    stack_begin();
    EXPECT(nandu_store_put(store, "lamp", 4, "on", 2), 0);
    stack_end("put");
    EXPECT(nandu_store_put(store, "lamp", 4, "off", 3), 0);
    EXPECT(nandu_store_put(store, "", 0, "", 0), 0);
    stack_begin();
    EXPECT(nandu_store_get(store, "lamp", 4, text, sizeof text), 3);
    stack_end("get");
    CHECK(same(text, "off", 3));
    EXPECT(nandu_store_get(store, "", 0, NULL, 0), 0);
    EXPECT(nandu_store_read(store, "lamp", 4, 1, text, sizeof text), 2);
    CHECK(same(text, "ff", 2));
    EXPECT(nandu_store_read(store, "lamp", 4, 99, text, sizeof text), 0);
    EXPECT(nandu_store_value_size(store, "lamp", 4), 3);
    EXPECT(nandu_store_get(store, "tap", 3, text, sizeof text), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_store_value_size(store, "tap", 3), NANDU_ERR_NOT_FOUND);
    stack_begin();
    EXPECT(nandu_store_delete(store, "", 0), 0);
    stack_end("delete");
    EXPECT(nandu_store_delete(store, "", 0), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_store_get(store, "lamp", 4, text, 2), NANDU_ERR_BUFFER);
    EXPECT(nandu_store_idle(store, 0), 0);

    nandu_stats stats;
    EXPECT(nandu_store_stats(store, &stats), 0);
    CHECK(stats.programs >= 4 && stats.bad_blocks == 1 && stats.was_cut == 0);
    nandu_store_info info;
    EXPECT(nandu_store_info_of(store, &info), 0);
    CHECK(info.record_count == 1 && info.height == 1 && info.key_size_max >= 100 && info.pending_count == 0);
}

#ifdef WITH_BLOBS
static uint8_t found[sizeof large];

static void large_values(nandu_store *store) {
    for (size_t at = 0; at < sizeof large; at++)
        large[at] = (uint8_t)(at * 7 + at / 256);
    stack_begin();
    EXPECT(nandu_store_put(store, "large", 5, large, sizeof large), 0);
    stack_end("put (large)");
    EXPECT(nandu_store_value_size(store, "large", 5), sizeof large);
    EXPECT(nandu_store_get(store, "large", 5, found, sizeof found), sizeof found);
    CHECK(same(large, found, sizeof large));
    EXPECT(nandu_store_get(store, "large", 5, found, sizeof found - 1), NANDU_ERR_BUFFER);
    EXPECT(nandu_store_read(store, "large", 5, 3000, found, 2500), 2500);
    CHECK(same(large + 3000, found, 2500));
}
#endif

static void batches(nandu_store *store) {
    static const char text[] = "21.5 C";
    nandu_edit edits[3] = {{"a", 1, text, 6}, {"b", 1, "", 0}, {"lamp", 4, NULL, 0}};
    const nandu_edit before[3] = {edits[0], edits[1], edits[2]};
    stack_begin();
    EXPECT(nandu_store_batch(store, edits, 3), 0);
    stack_end("batch");
    for (int i = 0; i < 3; i++)
        CHECK(edits[i].key == before[i].key && edits[i].key_size == before[i].key_size
              && edits[i].value_size == before[i].value_size && (edits[i].value == NULL) == (before[i].value == NULL));
    CHECK(edits[0].value == text);
    EXPECT(nandu_store_value_size(store, "a", 1), 6);
    EXPECT(nandu_store_value_size(store, "b", 1), 0);
    EXPECT(nandu_store_value_size(store, "lamp", 4), NANDU_ERR_NOT_FOUND);
    nandu_edit wrong[2] = {{"d", 1, text, 6}, {"c", 1, text, 6}};
    EXPECT(nandu_store_batch(store, wrong, 2), NANDU_ERR_NOT_ASCENDING);
    EXPECT(nandu_store_value_size(store, "d", 1), NANDU_ERR_NOT_FOUND);
    wrong[1].key = NULL;
    EXPECT(nandu_store_batch(store, wrong, 2), NANDU_ERR_ARGUMENT);
    CHECK(wrong[0].value == text && wrong[1].key == NULL);
    EXPECT(nandu_store_batch(store, NULL, 0), 0);
}

static void cursors(nandu_store *store) {
    nandu_cursor cursor;
    nandu_entry entry;
    for (uint8_t key = 100; key < 200; key++)
        EXPECT(nandu_store_put(store, &key, 1, &key, 1), 0);
    EXPECT(nandu_cursor_open(&cursor, store), 0);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, "\x78", 1), 0);
    for (uint8_t key = 0x78; key < 200; key++) {
        stack_begin();
        EXPECT(nandu_cursor_next(&cursor, &entry), 1);
        stack_end("cursor");
        CHECK(entry.key_size == 1 && same(entry.key, &key, 1) && entry.value_size == 1 && same(entry.value, &key, 1));
        /* A cursor goes on whatever becomes of the store. */
        if (key % 2 == 0)
            EXPECT(nandu_store_delete(store, &key, 1), 0);
    }
    EXPECT(nandu_cursor_next(&cursor, &entry), 0);
    EXPECT(nandu_cursor_previous(&cursor, &entry), 1);
    CHECK(*(const uint8_t *)entry.key == 199);
    EXPECT(nandu_cursor_previous(&cursor, &entry), 1);
    CHECK(*(const uint8_t *)entry.key == 197);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_FIRST, NULL, 0), 0);
    EXPECT(nandu_cursor_previous(&cursor, &entry), 0);
    EXPECT(nandu_cursor_next(&cursor, &entry), 1);
    CHECK(same(entry.key, "a", 1) && entry.value_size == 6);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_LAST, NULL, 0), 0);
    EXPECT(nandu_cursor_next(&cursor, &entry), 0);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_ABOVE, "\xc5", 1), 0);
    EXPECT(nandu_cursor_previous(&cursor, &entry), 1);
    CHECK(*(const uint8_t *)entry.key == 0xc5);
#ifdef WITH_BLOBS
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, "large", 5), 0);
    EXPECT(nandu_cursor_next(&cursor, &entry), 1);
    CHECK(entry.value == NULL && entry.value_size == sizeof large);
#endif
    EXPECT(nandu_cursor_close(&cursor), 0);
    EXPECT(nandu_cursor_next(&cursor, &entry), NANDU_ERR_HANDLE);
}

#ifdef WITH_SNAPSHOTS
static void snapshots(nandu_store *store) {
    uint32_t snapshot, numbers[2] = {0, 0};
    char text[8];
    nandu_cursor cursor;
    nandu_entry entry;
    EXPECT(nandu_store_put(store, "a", 1, "before", 6), 0);
    stack_begin();
    EXPECT(nandu_store_snapshot(store, &snapshot), 0);
    stack_end("snapshot");
    EXPECT(nandu_store_put(store, "a", 1, "after", 5), 0);
    EXPECT(nandu_store_get_at(store, snapshot, "a", 1, text, sizeof text), 6);
    CHECK(same(text, "before", 6));
    EXPECT(nandu_store_read_at(store, snapshot, "a", 1, 2, text, sizeof text), 4);
    EXPECT(nandu_store_get_at(store, snapshot, "a", 1, text, 5), NANDU_ERR_BUFFER);
    EXPECT(nandu_cursor_open_at(&cursor, store, snapshot), 0);
    EXPECT(nandu_cursor_next(&cursor, &entry), 1);
    CHECK(entry.value_size == 6 && same(entry.value, "before", 6));
    EXPECT(nandu_store_snapshots(store, numbers, 2), 1);
    CHECK(numbers[0] == snapshot);
    EXPECT(nandu_store_snapshots(store, NULL, 0), 1);
    EXPECT(nandu_store_snapshots(store, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_release(store, snapshot), 0);
    EXPECT(nandu_store_release(store, snapshot), NANDU_ERR_NO_SNAPSHOT);
    EXPECT(nandu_store_get_at(store, snapshot, "a", 1, text, sizeof text), NANDU_ERR_NO_SNAPSHOT);
    EXPECT(nandu_cursor_next(&cursor, &entry), NANDU_ERR_NO_SNAPSHOT);
    EXPECT(nandu_cursor_close(&cursor), 0);
}
#endif

#ifdef WITH_GROUP
/* Changes that wait: those that were synced are there after a cut. */
static void syncs(ram_chip *ram) {
    nandu_store *store;
    nandu_store_options on_sync = options;
    nandu_store_info info;
    uint8_t value;
    on_sync.durability = NANDU_DURABLE_ON_SYNC;
    ram_chip_make(ram);
    const nandu_chip chip = ram_chip_of(ram);
    EXPECT(nandu_store_format(&store, &chip, &on_sync, memory, sizeof memory), 0);
    const uint32_t programs = ram->programs;
    for (uint8_t key = 0; key < 10; key++)
        EXPECT(nandu_store_put(store, &key, 1, &key, 1), 0);
    EXPECT(nandu_store_info_of(store, &info), 0);
    EXPECT((int)info.pending_count, 10);
    CHECK(ram->programs <= programs + 1);
    stack_begin();
    EXPECT(nandu_store_sync(store), 0);
    stack_end("sync");
    CHECK(ram->programs <= programs + 2);
    EXPECT(nandu_store_put(store, "late", 4, "", 0), 0);
    EXPECT(nandu_store_abandon(store), 0);
    EXPECT(nandu_store_open(&store, &chip, &on_sync, memory, sizeof memory), 0);
    for (uint8_t key = 0; key < 10; key++) {
        EXPECT(nandu_store_get(store, &key, 1, &value, 1), 1);
        CHECK(value == key);
    }
    EXPECT(nandu_store_value_size(store, "late", 4), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_store_merge(store), 0);
    EXPECT(nandu_store_info_of(store, &info), 0);
    CHECK(info.pending_count == 0);
    EXPECT(nandu_store_close(store), 0);
}
#endif

/* What was acknowledged is there after cuts. */
static void cuts(ram_chip *ram) {
    uint32_t random = 1, acknowledged[16] = {0}, value, key, count = 0;
    nandu_store *store = format(ram, memory, sizeof memory);
    const nandu_chip chip = ram_chip_of(ram);
    EXPECT(nandu_store_close(store), 0);
    for (int cut = 0; cut < 60; cut++) {
        EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), 0);
        ram->cut_in = 1 + next_random(&random) % 200;
        int error;
        do {
            key = next_random(&random) % 16;
            count++;
            error = nandu_store_put(store, &key, sizeof key, &count, sizeof count);
            if (error == 0)
                acknowledged[key] = count;
        } while (error == 0);
        CHECK(ram->is_off);
        CHECK(nandu_store_get(store, "nobody", 6, NULL, 0) < 0);
        EXPECT(nandu_store_abandon(store), 0);
        ram->is_off = ram->is_begun = 0;
        stack_begin();
        EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), 0);
        stack_end("open");
        for (uint32_t i = 0; i < 16; i++) {
            const int32_t size = nandu_store_get(store, &i, sizeof i, &value, sizeof value);
            if (i == key && size == sizeof value && value == count)
                acknowledged[i] = count; /* the one that was cut is there or not */
            else if (acknowledged[i] > 0)
                CHECK(size == sizeof value && value == acknowledged[i]);
            else
                EXPECT(size, NANDU_ERR_NOT_FOUND);
        }
        nandu_stats stats;
        EXPECT(nandu_store_stats(store, &stats), 0);
        CHECK(stats.was_cut == 1);
        EXPECT(nandu_store_close(store), 0);
    }
    CHECK(ram->waits > ram->programs);
}

static uint64_t digest_of(nandu_store *store) {
    uint64_t digest = 0;
    stack_begin();
    EXPECT(nandu_store_digest(store, &digest), 0);
    stack_end("digest");
    return digest;
}

/* The digest is of what there is, and of nothing that was. */
static uint64_t digests(nandu_store *store) {
    const uint64_t before = digest_of(store);
    EXPECT(nandu_store_put(store, "digest", 6, "1", 1), 0);
    const uint64_t one = digest_of(store);
    EXPECT(nandu_store_put(store, "digest", 6, "2", 1), 0);
    const uint64_t two = digest_of(store);
    CHECK(one != before && two != before && one != two);
    EXPECT(nandu_store_put(store, "digest", 6, "1", 1), 0);
    CHECK(digest_of(store) == one);
#ifdef WITH_SNAPSHOTS
    uint32_t snapshot = 0;
    uint64_t kept = 0;
    EXPECT(nandu_store_snapshot(store, &snapshot), 0);
    CHECK(digest_of(store) == one);
    EXPECT(nandu_store_delete(store, "digest", 6), 0);
    EXPECT(nandu_store_digest_at(store, snapshot, &kept), 0);
    CHECK(kept == one && digest_of(store) == before);
    EXPECT(nandu_store_release(store, snapshot), 0);
    EXPECT(nandu_store_digest_at(store, snapshot, &kept), NANDU_ERR_NO_SNAPSHOT);
#else
    EXPECT(nandu_store_delete(store, "digest", 6), 0);
#endif
    CHECK(digest_of(store) == before);
    return before;
}

void test_store(ram_chip *first, ram_chip *second) {
    nandu_store *store = format(first, memory, sizeof memory), *twin;
    records(store);
#ifdef WITH_BLOBS
    large_values(store);
#endif
    batches(store);
    cursors(store);
#ifdef WITH_SNAPSHOTS
    snapshots(store);
#endif
    EXPECT(nandu_store_verify(store, report, NULL), 0);
    CHECK(reports == 0);
    const uint64_t digest = digests(store);

    /* Two volumes at once. */
    char text[4];
    twin = format(second, other, sizeof other);
    EXPECT(nandu_store_put(twin, "lamp", 4, "twin", 4), 0);
    EXPECT(nandu_store_value_size(store, "lamp", 4), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_store_get(twin, "lamp", 4, text, 4), 4);
    EXPECT(nandu_store_close(store), 0);
    EXPECT(nandu_store_get(twin, "lamp", 4, text, 4), 4);

    /* What is closed is read again. */
    const nandu_chip chip = ram_chip_of(first);
    EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), 0);
    EXPECT(nandu_store_value_size(store, "b", 1), 0);
    nandu_stats stats;
    EXPECT(nandu_store_stats(store, &stats), 0);
    CHECK(stats.was_cut == 0);
    CHECK(digest_of(store) == digest);
    stack_begin();
    EXPECT(nandu_store_close(store), 0);
    stack_end("close");
    EXPECT(nandu_store_close(twin), 0);
#ifdef WITH_GROUP
    syncs(first);
#endif
    cuts(first);
    say("store_memory", (long)nandu_store_memory(&chip, &options));
}

/* Opens that cannot be. */
static void opens(ram_chip *ram) {
    nandu_store *store;
    ram_chip_make(ram);
    const nandu_chip chip = ram_chip_of(ram);
    const size_t required = nandu_store_memory(&chip, &options);
    CHECK(required > 0 && required <= sizeof memory);
    EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), NANDU_ERR_NOT_FORMATTED);
    CHECK(store == NULL);
    EXPECT(nandu_store_open(NULL, &chip, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_open(&store, NULL, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_open(&store, &chip, &options, NULL, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_format(NULL, &chip, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_format(&store, NULL, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_format(&store, &chip, &options, NULL, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_format(&store, &chip, &options, memory, required - 1), NANDU_ERR_MEMORY);
    EXPECT(nandu_store_format(&store, &chip, &options, memory, 0), NANDU_ERR_MEMORY);
    EXPECT(nandu_store_memory(NULL, &options), 0);
    CHECK(nandu_store_memory(&chip, NULL) > 0);

    /* Memory of any alignment, and no more of it than was said. */
    for (size_t shift = 1; shift < 8; shift++) {
        uint8_t *shifted = (uint8_t *)memory + shift;
        CHECK(shift + required < sizeof memory);
        shifted[required] = 0xa5;
        EXPECT(nandu_store_format(&store, &chip, &options, shifted, required), 0);
        EXPECT(nandu_store_put(store, "lamp", 4, "on", 2), 0);
        EXPECT(nandu_store_close(store), 0);
        CHECK(shifted[required] == 0xa5);
    }

    nandu_chip wrong = chip;
    wrong.geometry.page_size = 2000;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_GEOMETRY);
    EXPECT(nandu_store_memory(&wrong, &options), 0);
    wrong = chip;
    wrong.geometry.block_count = UINT32_MAX;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_GEOMETRY);
    wrong = chip;
    wrong.geometry.pairing = 9;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_GEOMETRY);
    wrong = chip;
    wrong.geometry.block_count = RAM_BLOCK_COUNT - 1;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_OTHER_FORMAT);
    wrong = chip;
    wrong.read = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    wrong = chip;
    wrong.program = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    wrong = chip;
    wrong.program_tagged = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    wrong = chip;
    wrong.erase = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    wrong = chip;
    wrong.is_bad = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    wrong = chip;
    wrong.mark_bad = NULL;
    EXPECT(nandu_store_open(&store, &wrong, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);

    nandu_store_options odd = options;
    odd.durability = 2;
    EXPECT(nandu_store_open(&store, &chip, &odd, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    odd = options;
    odd.cache_size = UINT32_MAX;
    EXPECT(nandu_store_open(&store, &chip, &odd, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    odd = options;
    odd.reserved[1] = 1;
    EXPECT(nandu_store_open(&store, &chip, &odd, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    CHECK(store == NULL);
}

/* Every call with this handle, which is none that can be used. */
static void no_handle(nandu_store *store, int error) {
    char text[8];
    nandu_stats stats;
    nandu_store_info info;
    nandu_edit edit = {"a", 1, "", 0};
    nandu_cursor cursor;
    uint64_t digest;
    EXPECT(nandu_store_put(store, "a", 1, "", 0), error);
    EXPECT(nandu_store_get(store, "a", 1, text, sizeof text), error);
    EXPECT(nandu_store_read(store, "a", 1, 0, text, sizeof text), error);
    EXPECT(nandu_store_value_size(store, "a", 1), error);
    EXPECT(nandu_store_delete(store, "a", 1), error);
    EXPECT(nandu_store_batch(store, &edit, 1), error);
    EXPECT(nandu_store_sync(store), error);
    EXPECT(nandu_store_merge(store), error);
    EXPECT(nandu_store_idle(store, 1), error);
    EXPECT(nandu_store_info_of(store, &info), error);
    EXPECT(nandu_store_stats(store, &stats), error);
    EXPECT(nandu_store_verify(store, report, NULL), error);
    EXPECT(nandu_store_digest(store, &digest), error);
    EXPECT(nandu_cursor_open(&cursor, store), error);
#ifdef WITH_SNAPSHOTS
    uint32_t snapshot = 0;
    EXPECT(nandu_store_snapshot(store, &snapshot), error);
    EXPECT(nandu_store_release(store, snapshot), error);
    EXPECT(nandu_store_snapshots(store, &snapshot, 1), error);
    EXPECT(nandu_store_get_at(store, snapshot, "a", 1, text, sizeof text), error);
    EXPECT(nandu_store_read_at(store, snapshot, "a", 1, 0, text, sizeof text), error);
    EXPECT(nandu_store_digest_at(store, snapshot, &digest), error);
    EXPECT(nandu_cursor_open_at(&cursor, store, snapshot), error);
#endif
    EXPECT(nandu_store_close(store), error);
    EXPECT(nandu_store_abandon(store), error);
}

static void nulls(nandu_store *store) {
    char text[8];
    nandu_entry entry;
    nandu_cursor cursor;
    EXPECT(nandu_store_put(store, NULL, 1, "", 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_put(store, "a", 1, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_put(store, "a", SIZE_MAX, "", 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_put(store, "a", 1, "", SIZE_MAX), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_get(store, NULL, 1, text, sizeof text), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_get(store, "a", 1, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_read(store, NULL, 1, 0, text, sizeof text), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_read(store, "a", 1, 0, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_value_size(store, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_delete(store, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_batch(store, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_info_of(store, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_stats(store, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_digest(store, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_open(NULL, store), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_next(NULL, &entry), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_previous(NULL, &entry), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_seek(NULL, NANDU_SEEK_FIRST, NULL, 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_close(NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_open(&cursor, store), 0);
    EXPECT(nandu_cursor_next(&cursor, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_previous(&cursor, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_cursor_seek(&cursor, 4, "a", 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
#ifdef WITH_SNAPSHOTS
    EXPECT(nandu_store_snapshot(store, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_digest_at(store, 1, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_snapshots(store, NULL, 0), 0);
#endif
    const nandu_cursor zero = {0};
    cursor = zero;
    EXPECT(nandu_cursor_next(&cursor, &entry), NANDU_ERR_HANDLE);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_FIRST, NULL, 0), NANDU_ERR_HANDLE);
    EXPECT(nandu_cursor_close(&cursor), NANDU_ERR_HANDLE);
    static const uint8_t key[300];
    EXPECT(nandu_store_put(store, key, sizeof key, "", 0), NANDU_ERR_KEY_SIZE);
    EXPECT(nandu_store_get(store, key, sizeof key, text, sizeof text), NANDU_ERR_KEY_SIZE);
#ifndef WITH_BLOBS
    EXPECT(nandu_store_put(store, "a", 1, large, sizeof large), NANDU_ERR_NOT_COMPILED);
#endif
}

/* A range goes in steps, and nothing beside it. */
static void ranges(ram_chip *ram) {
    nandu_store *store = format(ram, memory, sizeof memory);
    nandu_store_info info;
    uint32_t deleted = 0, sum = 0;
    uint8_t key[2];
    for (unsigned i = 0; i < 300; i++) {
        key[0] = (uint8_t)(i >> 8), key[1] = (uint8_t)i;
        EXPECT(nandu_store_put(store, key, sizeof key, "on", 2), NANDU_OK);
    }
    static const uint8_t from[2] = {0, 10}, to[2] = {1, 0};
    int more;
    do {
        more = nandu_store_delete_range(store, from, sizeof from, to, sizeof to, &deleted);
        CHECK((more == 0 || more == 1) && deleted <= 16);
        sum += deleted;
    } while (more == 1);
    CHECK(sum == 246);
    EXPECT(nandu_store_delete_range(store, from, sizeof from, to, sizeof to, &deleted), 0);
    CHECK(deleted == 0);
    EXPECT(nandu_store_info_of(store, &info), NANDU_OK);
    CHECK(info.record_count == 54);
    while (nandu_store_delete_range(store, NULL, 0, NULL, 0, NULL) == 1)
        ;
    EXPECT(nandu_store_info_of(store, &info), NANDU_OK);
    CHECK(info.record_count == 0);
    EXPECT(nandu_store_delete_range(store, large, sizeof large, NULL, 0, NULL), NANDU_ERR_KEY_SIZE);
    EXPECT(nandu_store_delete_range(store, NULL, 1, NULL, 0, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_store_close(store), NANDU_OK);
    EXPECT(nandu_store_delete_range(store, NULL, 0, NULL, 0, NULL), NANDU_ERR_HANDLE);
}

/* Every call takes the lock once and gives it back, also after an error; without the lock nothing is done. */
static void locks(ram_chip *ram) {
    nandu_store *store = NULL;
    nandu_cursor cursor;
    nandu_entry entry;
    char text[8];
    ram_chip_make(ram);
    ram->is_shared = 1;
    nandu_chip chip = ram_chip_of(ram);
    ram->refuses = -1007;
    EXPECT(nandu_store_format(&store, &chip, &options, memory, sizeof memory), -1007);
    ram->refuses = 0;
    EXPECT(nandu_store_format(&store, &chip, &options, memory, sizeof memory), NANDU_OK);
    CHECK(ram->taken == 1 && ram->held == 0);
    EXPECT(nandu_store_put(store, "lamp", 4, "on", 2), NANDU_OK);
    EXPECT(nandu_store_get(store, "tap", 3, text, sizeof text), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_cursor_open(&cursor, store), NANDU_OK);
    EXPECT(nandu_cursor_next(&cursor, &entry), 1);
    CHECK(ram->taken == 4 && ram->held == 0);
    ram->refuses = NANDU_ERR_BUSY;
    EXPECT(nandu_store_put(store, "lamp", 4, "off", 3), NANDU_ERR_BUSY);
    EXPECT(nandu_store_close(store), NANDU_ERR_BUSY);
    ram->refuses = 0;
    EXPECT(nandu_store_get(store, "lamp", 4, text, sizeof text), 2);
    /* A lock that one task can take twice lets a callback in, which is refused all the same. */
    ram->intruder = store;
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
    ram->intruder = NULL;
    EXPECT(ram->intrusion, NANDU_ERR_BUSY);
    EXPECT(nandu_store_close(store), NANDU_OK);
    EXPECT(nandu_store_close(store), NANDU_ERR_HANDLE);
    CHECK(ram->held == 0);
    EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), NANDU_OK);
    EXPECT(nandu_store_abandon(store), NANDU_OK);
    CHECK(ram->held == 0);
    chip.unlock = NULL;
    EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
}

void test_store_misuse(ram_chip *ram) {
    ranges(ram);
    locks(ram);
    opens(ram);
    no_handle(NULL, NANDU_ERR_ARGUMENT);
    nandu_store *store = format(ram, memory, sizeof memory);
    nulls(store);

    /* Memory that is no handle: zeros, a copy of a handle, an address that no handle has. */
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        other[i] = 0;
    no_handle((nandu_store *)other, NANDU_ERR_HANDLE);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        other[i] = memory[i];
    no_handle((nandu_store *)((uint8_t *)other + ((uint8_t *)store - (uint8_t *)memory)), NANDU_ERR_HANDLE);
    no_handle((nandu_store *)(void *)((uint8_t *)memory + 4), NANDU_ERR_HANDLE);

    /* A callback that calls its own volume. */
    char text[8];
    EXPECT(nandu_store_put(store, "lamp", 4, "on", 2), 0);
    EXPECT(nandu_store_close(store), 0);
    const nandu_chip chip = ram_chip_of(ram);
    EXPECT(nandu_store_open(&store, &chip, &options, memory, sizeof memory), 0);
    ram->intruder = store;
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
    ram->intruder = NULL;
    EXPECT(ram->intrusion, NANDU_ERR_BUSY);
    EXPECT(nandu_store_get(store, "lamp", 4, text, sizeof text), 2);

    /* Everything after the close, cursors too. */
    nandu_cursor cursor;
    nandu_entry entry;
    EXPECT(nandu_cursor_open(&cursor, store), 0);
    EXPECT(nandu_store_close(store), 0);
    no_handle(store, NANDU_ERR_HANDLE);
    EXPECT(nandu_cursor_next(&cursor, &entry), NANDU_ERR_HANDLE);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_FIRST, NULL, 0), NANDU_ERR_HANDLE);
    EXPECT(nandu_cursor_close(&cursor), 0);
    CHECK(same(nandu_error_name(NANDU_ERR_FULL), "NANDU_ERR_FULL", 15));
    CHECK(same(nandu_error_name(NANDU_OK), "NANDU_OK", 9));
    CHECK(same(nandu_error_name(-500), "NANDU_ERR_?", 12));
    CHECK(nandu_error_text(NANDU_ERR_FULL)[0] != 0 && nandu_error_text(0)[0] != 0 && nandu_error_text(-2000)[0] != 0);
    CHECK(nandu_version()[0] != 0);
}
