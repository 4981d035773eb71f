/* Keeps what a sensor measures, by time: many measurements are durable with one program, and the oldest go when there are too many. */
#include "example.h"

static uint8_t memory[NANDU_STORE_MEMORY(2048, 1024, 1024, 4096)];

/* Keys are ordered as bytes are, so a time is stored with its highest byte first. */
static void key_of(uint32_t second, uint8_t key[4]) {
    for (int i = 0; i < 4; i++)
        key[i] = (uint8_t)(second >> (24 - 8 * i));
}

/* Puts a minute of measurements, and makes them durable together. */
static int measure(nandu_store *store, uint32_t from) {
    for (uint32_t second = from; second < from + 60; second++) {
        const int16_t tenths = (int16_t)(215 + second % 7);
        uint8_t key[4];
        key_of(second, key);
        const int error = nandu_store_put(store, key, sizeof key, &tenths, sizeof tenths);
        if (error != 0)
            return error;
    }
    return nandu_store_sync(store);
}

/* Deletes everything before a time. A cursor borrows nothing, so the store may be changed under it. */
static int forget(nandu_store *store, uint32_t before) {
    nandu_cursor cursor;
    nandu_entry entry;
    uint8_t key[4];
    key_of(before, key);
    int more = nandu_cursor_open(&cursor, store);
    if (more == 0)
        more = nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, key, sizeof key);
    if (more != 0)
        return more;
    while ((more = nandu_cursor_previous(&cursor, &entry)) > 0) {
        /* The key is lent until the next call: a delete takes a copy. */
        uint8_t old[4];
        for (int i = 0; i < 4; i++)
            old[i] = ((const uint8_t *)entry.key)[i];
        const int error = nandu_store_delete(store, old, sizeof old);
        if (error != 0)
            return error;
    }
    return more;
}

int example(const nandu_chip *chip) {
    const nandu_store_options options = {.cache_size = 1024, .pending_size = 4096, .durability = NANDU_DURABLE_ON_SYNC};
    nandu_store *store;
    int error = nandu_store_open(&store, chip, &options, memory, sizeof memory);
    if (error == NANDU_ERR_NOT_FORMATTED)
        error = nandu_store_format(&store, chip, &options, memory, sizeof memory);
    if (error != 0)
        return error;

    /* The newest measurement says where to go on. */
    nandu_cursor cursor;
    nandu_entry entry;
    uint32_t next = 0;
    error = nandu_cursor_open(&cursor, store);
    if (error == 0)
        error = nandu_cursor_seek(&cursor, NANDU_SEEK_LAST, NULL, 0);
    if (error == 0 && nandu_cursor_previous(&cursor, &entry) == 1) {
        const uint8_t *key = (const uint8_t *)entry.key;
        next = ((uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3]) + 1;
    }
    for (int minute = 0; minute < 10 && error == 0; minute++, next += 60)
        error = measure(store, next);
    if (error == 0)
        error = forget(store, next > 900 ? next - 900 : 0);
    if (error == 0)
        error = nandu_store_sync(store);
    nandu_store_info info;
    if (error == 0)
        error = nandu_store_info_of(store, &info);
    if (error != 0)
        return error;
    say("next second", (long)next);
    say("measurements kept", (long)info.record_count);
    return nandu_store_close(store);
}
