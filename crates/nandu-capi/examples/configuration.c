/* Settings that belong together are changed together: after a power cut all of them are the old ones or all of them the new ones. */
#include "example.h"

static uint8_t memory[NANDU_STORE_MEMORY(2048, 1024, 1024, 0)];

int example(const nandu_chip *chip) {
    const nandu_store_options options = {.cache_size = 1024};
    nandu_store *store;
    uint32_t revision = 0, seen = 0;
    int error = nandu_store_open(&store, chip, &options, memory, sizeof memory);
    if (error == NANDU_ERR_NOT_FORMATTED)
        error = nandu_store_format(&store, chip, &options, memory, sizeof memory);
    if (error != 0)
        return error;
    if (nandu_store_get(store, "net/revision", 12, &revision, sizeof revision) < 0)
        revision = 0;
    revision++;

    /* Keys ascend; a value that is null deletes its key. */
    static const char address[] = "192.0.2.7", gateway[] = "192.0.2.1";
    nandu_edit edits[] = {
        {"net/address", 11, address, sizeof address - 1},
        {"net/dhcp", 8, NULL, 0},
        {"net/gateway", 11, gateway, sizeof gateway - 1},
        {"net/revision", 12, &revision, sizeof revision},
    };
    error = nandu_store_batch(store, edits, sizeof edits / sizeof edits[0]);
    if (error != 0)
        return error;

    /* Everything below "net/". */
    nandu_cursor cursor;
    nandu_entry entry;
    error = nandu_cursor_open(&cursor, store);
    if (error == 0)
        error = nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, "net/", 4);
    if (error != 0)
        return error;
    while ((error = nandu_cursor_next(&cursor, &entry)) > 0)
        seen++;
    if (error != 0)
        return error;
    say("revision", (long)revision);
    say("settings", (long)seen);
    return nandu_store_close(store);
}
