/*
 * Stores and files against a model, with and without power cuts, on simulated chips of real parts through the callbacks.
 *
 * model [OPERATIONS [CUTS]]: half of them for stores, half for files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "nandu_sim.h"

void fail(const char *file, int line, const char *what, long found) {
    fprintf(stderr, "%s:%d: %s: %ld (%s)\n", file, line, what, found, nandu_error_name((int)found));
    exit(1);
}

static uint32_t seed = 2463534242u;

static uint32_t below(uint32_t bound) {
    return (uint32_t)((uint64_t)next_random(&seed) * bound >> 32);
}

/* ---- Records ------------------------------------------------------------------------------------------------------------------ */

#define KEYS 150u
#define VALUE_MAX 6000u
#define WAITING_MAX 64u
#define BATCH_MAX 5u

/* What is at each key: a version, from which its value follows; 0: nothing. */
typedef struct model {
    uint32_t version[KEYS];
} model;

/* Changes that come together or not at all. */
typedef struct change {
    uint32_t key[BATCH_MAX], version[BATCH_MAX], count;
} change;

/* A store, what was acknowledged as durable, and what was done since. */
typedef struct life {
    nandu_store *store;
    nandu_store_options options;
    model durable, now;
    change waiting[WAITING_MAX];
    uint32_t waiting_count, versions;
} life;

static uint8_t value[VALUE_MAX], found[VALUE_MAX];

static size_t key_of(uint32_t key, char *text) {
    return (size_t)sprintf(text, "%s%u", key % 3 == 0 ? "sensor/temperature/" : "k", (unsigned)key);
}

static size_t value_of(uint32_t key, uint32_t version) {
    uint32_t state = key * 7919u + version * 104729u + 1;
    size_t size = next_random(&state) % 300;
    if (version % 50 == 0)
        size = 3000 + next_random(&state) % 3000;
    for (size_t at = 0; at < size; at++)
        value[at] = (uint8_t)(version * 31 + key + at * 3 + at / 256);
    for (size_t at = 0; at < 4 && at < size; at++)
        value[at] = (uint8_t)(version >> 8 * at);
    return size;
}

static int is_at(nandu_store *store, uint32_t key, uint32_t version) {
    char text[40];
    const size_t key_size = key_of(key, text);
    const int32_t size = nandu_store_get(store, text, key_size, found, sizeof found);
    if (size == NANDU_ERR_NOT_FOUND)
        return version == 0;
    CHECK(size >= 0);
    return version != 0 && (size_t)size == value_of(key, version) && memcmp(value, found, (size_t)size) == 0;
}

static void apply(model *to, const change *what) {
    for (uint32_t i = 0; i < what->count; i++)
        to->version[what->key[i]] = what->version[i];
}

static void acknowledge(life *it) {
    it->durable = it->now;
    it->waiting_count = 0;
}

/* Notes a change, before it is made: it may be there after a cut. */
static void announce(life *it, const change *what) {
    CHECK(it->waiting_count < WAITING_MAX);
    it->waiting[it->waiting_count++] = *what;
}

static int make(life *it, const change *what) {
    char keys[BATCH_MAX][40];
    static uint8_t values[BATCH_MAX][VALUE_MAX];
    nandu_edit edits[BATCH_MAX];
    for (uint32_t i = 0; i < what->count; i++) {
        edits[i].key = keys[i];
        edits[i].key_size = key_of(what->key[i], keys[i]);
        edits[i].value_size = value_of(what->key[i], what->version[i]);
        memcpy(values[i], value, edits[i].value_size);
        edits[i].value = what->version[i] == 0 ? NULL : values[i];
    }
    if (what->count > 1)
        return nandu_store_batch(it->store, edits, what->count);
    if (edits[0].value != NULL)
        return nandu_store_put(it->store, edits[0].key, edits[0].key_size, edits[0].value, edits[0].value_size);
    const int error = nandu_store_delete(it->store, edits[0].key, edits[0].key_size);
    if (error != 0 && error != NANDU_ERR_NOT_FOUND)
        return error;
    CHECK((error == NANDU_ERR_NOT_FOUND) == (it->now.version[what->key[0]] == 0));
    return 0;
}

static int compare_keys(const void *a, const void *b) {
    char left[40], right[40];
    const size_t left_size = key_of(*(const uint32_t *)a, left), right_size = key_of(*(const uint32_t *)b, right);
    const int order = memcmp(left, right, left_size < right_size ? left_size : right_size);
    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

/* A change by chance: a put, a delete, or a batch of small values with ascending keys. */
static change any_change(life *it) {
    change what = {{0}, {0}, 1};
    if (below(8) == 0) {
        const uint32_t most = 2 + below(BATCH_MAX - 1);
        uint32_t keys[BATCH_MAX], count = 0;
        for (uint32_t i = 0; i < most; i++)
            keys[i] = below(KEYS);
        qsort(keys, most, sizeof keys[0], compare_keys);
        for (uint32_t i = 0; i < most; i++)
            if (count == 0 || keys[i] != what.key[count - 1])
                what.key[count++] = keys[i];
        what.count = count;
    } else {
        what.key[0] = below(KEYS);
    }
    for (uint32_t i = 0; i < what.count; i++) {
        it->versions++;
        if (what.count > 1 && it->versions % 50 == 0)
            it->versions++;
        what.version[i] = below(4) == 0 ? 0 : it->versions;
    }
    return what;
}

/* An operation by chance. Returns 0 or what the chip said. */
static int step(life *it) {
    const uint32_t kind = below(100), key = below(KEYS);
    char text[40];
    if (kind < 60) {
        const change what = any_change(it);
        announce(it, &what);
        const int error = make(it, &what);
        if (error != 0)
            return error;
        apply(&it->now, &what);
        if (it->options.durability == NANDU_DURABLE_AT_ONCE || it->waiting_count == WAITING_MAX)
            return it->options.durability == NANDU_DURABLE_AT_ONCE ? (acknowledge(it), 0) : nandu_store_sync(it->store);
        return 0;
    }
    if (kind < 65) {
        const int error = nandu_store_sync(it->store);
        if (error == 0)
            acknowledge(it);
        return error;
    }
    if (kind < 66) {
        const int worked = nandu_store_idle(it->store, 1 + below(20));
        return worked < 0 ? worked : 0;
    }
    if (kind < 80) {
        const int32_t size = nandu_store_get(it->store, text, key_of(key, text), found, sizeof found);
        if (size < 0 && size != NANDU_ERR_NOT_FOUND)
            return size;
        CHECK((size == NANDU_ERR_NOT_FOUND) == (it->now.version[key] == 0));
        CHECK(size < 0 || ((size_t)size == value_of(key, it->now.version[key]) && memcmp(value, found, (size_t)size) == 0));
        return 0;
    }
    if (kind < 90) {
        const uint32_t offset = below(300);
        const int32_t size = nandu_store_read(it->store, text, key_of(key, text), offset, found, 1 + below(2000));
        if (size < 0 && size != NANDU_ERR_NOT_FOUND)
            return size;
        if (size > 0) {
            const size_t whole = value_of(key, it->now.version[key]);
            CHECK(offset + (size_t)size <= whole && memcmp(value + offset, found, (size_t)size) == 0);
        }
        return 0;
    }
    /* A cursor meets the nearest key there is. */
    nandu_cursor cursor;
    nandu_entry entry;
    EXPECT(nandu_cursor_open(&cursor, it->store), 0);
    EXPECT(nandu_cursor_seek(&cursor, NANDU_SEEK_ABOVE, text, key_of(key, text)), 0);
    const int is_up = below(2) == 0;
    const int met = is_up ? nandu_cursor_next(&cursor, &entry) : nandu_cursor_previous(&cursor, &entry);
    if (met < 0)
        return met;
    uint32_t nearest = KEYS;
    for (uint32_t other = 0; other < KEYS; other++) {
        const int order = compare_keys(&other, &key);
        if (it->now.version[other] == 0 || (is_up ? order <= 0 : order > 0))
            continue;
        if (nearest == KEYS || (compare_keys(&other, &nearest) < 0) == is_up)
            nearest = other;
    }
    CHECK((nearest < KEYS) == met);
    if (met == 1) {
        const size_t size = value_of(nearest, it->now.version[nearest]);
        CHECK(entry.key_size == key_of(nearest, text) && memcmp(entry.key, text, entry.key_size) == 0 && entry.value_size == size);
        CHECK(entry.value == NULL ? size > 400 : memcmp(entry.value, value, size) == 0);
    }
    return nandu_cursor_close(&cursor);
}

/* After a cut the store is what some first part of the changes made of it, all those included that were acknowledged as durable. */
static void compare(life *it) {
    static model maybe;
    maybe = it->durable;
    for (uint32_t done = 0;; done++) {
        uint32_t key = 0;
        while (key < KEYS && is_at(it->store, key, maybe.version[key]))
            key++;
        if (key == KEYS)
            break;
        if (done == it->waiting_count)
            fail(__FILE__, __LINE__, "something that was acknowledged is lost: key", (long)key);
        apply(&maybe, &it->waiting[done]);
    }
    it->now = maybe;
    acknowledge(it);
}

static void store_lives(const char *preset, uint32_t blocks, int durability, uint32_t operations, uint32_t cuts) {
    static life it;
    nandu_chip chip;
    nandu_sim *sim = nandu_sim_new(preset, blocks, seed);
    CHECK(sim != NULL);
    EXPECT(nandu_sim_mark_factory_bad(sim, 5), 0);
    EXPECT(nandu_sim_chip(sim, &chip), 0);
    memset(&it, 0, sizeof it);
    it.options.cache_size = 2048;
    it.options.durability = (uint8_t)durability;
    it.options.pending_size = durability == NANDU_DURABLE_ON_SYNC ? 4096 : 0;
    const size_t size = nandu_store_memory(&chip, &it.options);
    void *memory = malloc(size);
    CHECK(size > 0 && memory != NULL);
    EXPECT(nandu_store_format(&it.store, &chip, &it.options, memory, size), 0);
    for (uint32_t i = 0; i < operations; i++) {
        EXPECT(step(&it), 0);
        if (it.waiting_count == WAITING_MAX) {
            EXPECT(nandu_store_sync(it.store), 0);
            acknowledge(&it);
        }
        if (i % 2000 == 1999) {
            EXPECT(nandu_store_close(it.store), 0);
            acknowledge(&it);
            EXPECT(nandu_store_open(&it.store, &chip, &it.options, memory, size), 0);
        }
    }
    EXPECT(nandu_store_verify(it.store, NULL, NULL), 0);
    for (uint32_t cut = 0; cut < cuts; cut++) {
        EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + below(80), NANDU_TEAR_ANY), 0);
        int error = 0;
        while (error == 0) {
            error = step(&it);
            if (error == 0 && it.waiting_count == WAITING_MAX) {
                error = nandu_store_sync(it.store);
                if (error == 0)
                    acknowledge(&it);
            }
        }
        EXPECT(nandu_sim_is_off(sim), 1);
        EXPECT(nandu_store_abandon(it.store), 0);
        EXPECT(nandu_sim_power_on(sim), 0);
        if (below(3) == 0) {
            /* The recovery is cut too. */
            EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + below(30), NANDU_TEAR_ANY), 0);
            if (nandu_store_open(&it.store, &chip, &it.options, memory, size) == 0)
                EXPECT(nandu_store_abandon(it.store), 0);
            EXPECT(nandu_sim_clear_cuts(sim), 0);
            EXPECT(nandu_sim_power_on(sim), 0);
        }
        EXPECT(nandu_store_open(&it.store, &chip, &it.options, memory, size), 0);
        if (below(8) == 0)
            EXPECT(nandu_sim_advance(sim, UINT64_C(3600000000000)), 0);
        compare(&it);
    }
    EXPECT(nandu_store_verify(it.store, NULL, NULL), 0);
    EXPECT(nandu_store_close(it.store), 0);
    nandu_sim_free(sim);
    free(memory);
    printf("store on %s, %s: %u operations, %u cuts\n", preset, durability ? "durable on sync" : "durable at once", (unsigned)operations, (unsigned)cuts);
}

/* ---- Files -------------------------------------------------------------------------------------------------------------------- */

#define FILES 12u
#define FILE_MAX 9000u

static struct {
    uint8_t bytes[FILE_MAX];
    uint32_t size;
    int is_there;
} shadow[FILES];

static void path_of(uint32_t file, char *path) {
    sprintf(path, "/d%u/file-%u", (unsigned)(file % 3), (unsigned)file);
}

static void fill(uint8_t *bytes, uint32_t size, uint32_t version) {
    for (uint32_t at = 0; at < size; at++)
        bytes[at] = (uint8_t)(version * 17 + at + at / 200);
}

/* An operation on files by chance, against their shadows. */
static void file_step(nandu_fs *fs) {
    static uint8_t bytes[FILE_MAX];
    static uint32_t version;
    const uint32_t kind = below(100), file = below(FILES);
    char path[32], to[32];
    nandu_file open;
    path_of(file, path);
    if (kind < 40) {
        EXPECT(nandu_file_open(&open, fs, path, NANDU_OPEN_WRITE | NANDU_OPEN_CREATE), 0);
        if (!shadow[file].is_there) {
            shadow[file].is_there = 1;
            shadow[file].size = 0;
        }
        const uint32_t offset = below(FILE_MAX), size = below(FILE_MAX - offset < 3000 ? FILE_MAX - offset : 3000) + 1;
        fill(bytes, size, ++version);
        EXPECT(nandu_file_seek(&open, offset, NANDU_FROM_START), offset);
        EXPECT(nandu_file_write(&open, bytes, size), size);
        if (offset > shadow[file].size)
            memset(shadow[file].bytes + shadow[file].size, 0, offset - shadow[file].size);
        memcpy(shadow[file].bytes + offset, bytes, size);
        if (offset + size > shadow[file].size)
            shadow[file].size = offset + size;
        if (below(3) == 0)
            EXPECT(nandu_file_sync(&open), 0);
        EXPECT(nandu_file_close(&open), 0);
    } else if (kind < 75) {
        const int error = nandu_file_open(&open, fs, path, NANDU_OPEN_READ);
        EXPECT(error, shadow[file].is_there ? 0 : NANDU_ERR_NOT_FOUND);
        if (error != 0)
            return;
        EXPECT(nandu_file_size(&open), shadow[file].size);
        const uint32_t offset = below(FILE_MAX), size = below(FILE_MAX);
        EXPECT(nandu_file_seek(&open, offset, NANDU_FROM_START), offset);
        const uint32_t left = offset < shadow[file].size ? shadow[file].size - offset : 0;
        EXPECT(nandu_file_read(&open, bytes, size), size < left ? size : left);
        CHECK(memcmp(bytes, shadow[file].bytes + offset, size < left ? size : left) == 0);
        EXPECT(nandu_file_close(&open), 0);
    } else if (kind < 82) {
        EXPECT(nandu_fs_unlink(fs, path), shadow[file].is_there ? 0 : NANDU_ERR_NOT_FOUND);
        shadow[file].is_there = 0;
    } else if (kind < 90) {
        const uint32_t other = below(FILES);
        path_of(other, to);
        EXPECT(nandu_fs_rename(fs, path, to, NANDU_RENAME_REPLACE), shadow[file].is_there ? 0 : NANDU_ERR_NOT_FOUND);
        if (shadow[file].is_there && other != file) {
            shadow[other] = shadow[file];
            shadow[file].is_there = 0;
        }
    } else if (kind < 97) {
        const uint32_t size = below(FILE_MAX);
        uint64_t ino;
        if (nandu_fs_lookup(fs, path, &ino) != 0)
            return;
        EXPECT(nandu_fs_truncate_at(fs, ino, size), 0);
        if (size > shadow[file].size)
            memset(shadow[file].bytes + shadow[file].size, 0, size - shadow[file].size);
        shadow[file].size = size;
    } else {
        CHECK(nandu_fs_idle(fs, below(10)) >= 0);
    }
}

/* A change of a file that is durable when it returns: another takes its place, or it goes. */
static int durable_step(nandu_fs *fs, uint32_t file, uint32_t version) {
    static uint8_t bytes[FILE_MAX];
    char path[32];
    nandu_file open;
    path_of(file, path);
    if (version % 5 == 0) {
        const int error = nandu_fs_unlink(fs, path);
        return error == 0 || error == NANDU_ERR_NOT_FOUND ? nandu_fs_sync(fs) : error;
    }
    int error = nandu_file_open(&open, fs, "draft", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE | NANDU_OPEN_TRUNCATE);
    if (error != 0)
        return error;
    const uint32_t size = 1 + version * 131 % (FILE_MAX - 1);
    fill(bytes, size, version);
    const int32_t count = nandu_file_write(&open, bytes, size);
    CHECK(count < 0 || (uint32_t)count == size);
    error = nandu_file_close(&open);
    if (count < 0 || error != 0)
        return count < 0 ? count : error;
    return nandu_fs_rename(fs, "draft", path, NANDU_RENAME_REPLACE);
}

static int file_is_at(nandu_fs *fs, uint32_t file, uint32_t version) {
    static uint8_t bytes[FILE_MAX], expected[FILE_MAX];
    char path[32];
    nandu_file open;
    path_of(file, path);
    const int error = nandu_file_open(&open, fs, path, NANDU_OPEN_READ);
    if (error == NANDU_ERR_NOT_FOUND)
        return version % 5 == 0;
    EXPECT(error, 0);
    const int32_t size = nandu_file_read(&open, bytes, sizeof bytes);
    CHECK(size >= 0);
    EXPECT(nandu_file_close(&open), 0);
    if (version % 5 == 0 || (uint32_t)size != 1 + version * 131 % (FILE_MAX - 1))
        return 0;
    fill(expected, (uint32_t)size, version);
    return memcmp(bytes, expected, (size_t)size) == 0;
}

static void file_lives(const char *preset, uint32_t blocks, uint32_t operations, uint32_t cuts) {
    nandu_chip chip;
    nandu_fs *fs;
    nandu_sim *sim = nandu_sim_new(preset, blocks, seed);
    const int is_mlc = strcmp(preset, "mlc-4k") == 0;
    const nandu_fs_options options = {.open_max = 4, .both_modes = (uint8_t)is_mlc};
    CHECK(sim != NULL);
    EXPECT(nandu_sim_chip(sim, &chip), 0);
    const size_t size = nandu_fs_memory(&chip, &options);
    void *memory = malloc(size);
    CHECK(size > 0 && memory != NULL);
    EXPECT(nandu_fs_format(&fs, &chip, &options, NULL, memory, size), 0);
    for (unsigned i = 0; i < 3; i++) {
        char path[8];
        sprintf(path, "d%u", i);
        EXPECT(nandu_fs_mkdir(fs, path, 0755), 0);
    }
    memset(shadow, 0, sizeof shadow);
    for (uint32_t i = 0; i < operations; i++) {
        EXPECT(nandu_fs_set_now(fs, i, 0), 0);
        file_step(fs);
        if (i % 2000 == 1999) {
            EXPECT(nandu_fs_unmount(fs), 0);
            EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, size), 0);
        }
    }
    EXPECT(nandu_fs_verify(fs, NULL, 0, NULL, NULL), 0);

    uint32_t durable[FILES], version = 0;
    for (uint32_t file = 0; file < FILES; file++) {
        durable[file] = ++version;
        EXPECT(durable_step(fs, file, version), 0);
    }
    for (uint32_t cut = 0; cut < cuts; cut++) {
        EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + below(60), NANDU_TEAR_ANY), 0);
        uint32_t file;
        int error;
        do {
            file = below(FILES);
            error = durable_step(fs, file, ++version);
            if (error == 0)
                durable[file] = version;
        } while (error == 0);
        EXPECT(nandu_sim_is_off(sim), 1);
        EXPECT(nandu_fs_abandon(fs), 0);
        EXPECT(nandu_sim_power_on(sim), 0);
        if (below(3) == 0) {
            EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + below(30), NANDU_TEAR_ANY), 0);
            if (nandu_fs_mount(&fs, &chip, &options, memory, size) == 0)
                EXPECT(nandu_fs_abandon(fs), 0);
            EXPECT(nandu_sim_clear_cuts(sim), 0);
            EXPECT(nandu_sim_power_on(sim), 0);
        }
        EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, size), 0);
        if (file_is_at(fs, file, version))
            durable[file] = version; /* the one that was cut is there or not */
        for (uint32_t other = 0; other < FILES; other++)
            if (!file_is_at(fs, other, durable[other]))
                fail(__FILE__, __LINE__, "a file that was acknowledged is lost", (long)other);
    }
    EXPECT(nandu_fs_verify(fs, NULL, 0, NULL, NULL), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    nandu_sim_free(sim);
    free(memory);
    printf("files on %s: %u operations, %u cuts\n", preset, (unsigned)operations, (unsigned)cuts);
}

/* ---- The power-cut driver ----------------------------------------------------------------------------------------------------- */

/* A workload of five puts, with memory in the context; what was acknowledged is noted as a count. */
typedef struct driven {
    uint8_t *memory;
    size_t size;
} driven;

static int drive(void *context, const nandu_chip *chip, void *noted) {
    const driven *it = (const driven *)context;
    uint32_t *acknowledged = (uint32_t *)noted;
    nandu_store *store;
    int error = nandu_store_open(&store, chip, NULL, it->memory, it->size);
    for (uint32_t i = 1; i <= 5 && error == 0; i++) {
        error = nandu_store_put(store, "count", 5, &i, sizeof i);
        if (error == 0)
            *acknowledged = i;
    }
    if (store != NULL)
        nandu_store_abandon(store);
    return error;
}

static int look(void *context, const nandu_chip *chip, const void *noted, uint64_t *seen) {
    const driven *it = (const driven *)context;
    const uint32_t acknowledged = *(const uint32_t *)noted;
    uint32_t count = 0;
    nandu_store *store;
    if (nandu_store_open(&store, chip, NULL, it->memory, it->size) != 0)
        return 1;
    const int32_t size = nandu_store_get(store, "count", 5, &count, sizeof count);
    *seen = count;
    nandu_store_abandon(store);
    return size == NANDU_ERR_NOT_FOUND ? acknowledged > 0 : count < acknowledged || count > acknowledged + 1;
}

/* The same, and it forgets what it has seen. */
static int look_wrongly(void *context, const nandu_chip *chip, const void *noted, uint64_t *seen) {
    (void)context, (void)chip, (void)seen;
    return *(const uint32_t *)noted > 3;
}

static void driver(void) {
    nandu_chip chip;
    nandu_store *store;
    nandu_power_cut_summary every, random;
    nandu_sim *sim = nandu_sim_new("w25n01gv", 16, 3);
    CHECK(sim != NULL && nandu_sim_new("no such chip", 0, 0) == NULL);
    EXPECT(nandu_sim_chip(sim, &chip), 0);
    driven it = {NULL, nandu_store_memory(&chip, NULL)};
    it.memory = (uint8_t *)malloc(it.size);
    CHECK(it.memory != NULL);
    EXPECT(nandu_store_format(&store, &chip, NULL, it.memory, it.size), 0);
    EXPECT(nandu_store_close(store), 0);
    const nandu_power_cut test = {.context = &it, .noted_size = sizeof(uint32_t), .workload = drive, .check = look};
    EXPECT(nandu_power_cut_every(sim, &test, &every), 0);
    EXPECT(nandu_power_cut_random(sim, &test, 1, 50, &random), 0);
    CHECK(every.cases > 30 && random.cases >= 50);
    printf("driver: %u cases, %u by chance\n", (unsigned)every.cases, (unsigned)random.cases);
    nandu_power_cut wrong = test;
    wrong.check = look_wrongly;
    fprintf(stderr, "the next failure is one that has to be found\n");
    EXPECT(nandu_power_cut_every(sim, &wrong, NULL), 1);
    wrong.workload = NULL;
    EXPECT(nandu_power_cut_every(sim, &wrong, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_power_cut_every(NULL, &test, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_power_cut_every(sim, NULL, NULL), NANDU_ERR_ARGUMENT);
    nandu_sim *copy = nandu_sim_clone(sim);
    EXPECT(nandu_sim_cut_at(copy, 0, 99), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_sim_mark_factory_bad(copy, 16), NANDU_ERR_OUT_OF_BOUNDS);
    EXPECT(nandu_sim_last_tear(copy), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_sim_chip(NULL, &chip), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_sim_chip(copy, NULL), NANDU_ERR_ARGUMENT);
    nandu_sim_counters counters;
    EXPECT(nandu_sim_count(copy, &counters), 0);
    CHECK(counters.programs > 0);
    nandu_sim_free(copy);
    nandu_sim_free(NULL);
    nandu_sim_free(sim);
    free(it.memory);
}

int main(int argc, char **argv) {
    const uint32_t operations = argc > 1 ? (uint32_t)atol(argv[1]) : 100000, cuts = argc > 2 ? (uint32_t)atol(argv[2]) : 2000;
    driver();
    store_lives("w25n01gv", 40, NANDU_DURABLE_AT_ONCE, operations / 4, cuts / 4);
    store_lives("mt29f4g01", 40, NANDU_DURABLE_ON_SYNC, operations / 4, cuts / 4);
    file_lives("w25n01gv", 40, operations / 4, cuts / 4);
    file_lives("mlc-4k", 40, operations / 4, cuts / 4);
    return 0;
}
