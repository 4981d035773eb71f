/* Counts how often a device has started. The count is right whenever the power goes: a put is durable when it returns. */
#include "example.h"

/* For a chip of up to 1,024 blocks with pages of 2 KiB: 1 KiB for nodes of the tree, nothing for changes that wait. */
static uint8_t memory[NANDU_STORE_MEMORY(2048, 1024, 1024, 0)];

int example(const nandu_chip *chip) {
    const nandu_store_options options = {.cache_size = 1024};
    nandu_store *store;
    uint32_t boots = 0;
    int error = nandu_store_open(&store, chip, &options, memory, sizeof memory);
    if (error == NANDU_ERR_NOT_FORMATTED)
        error = nandu_store_format(&store, chip, &options, memory, sizeof memory);
    if (error != 0)
        return error;
    const int32_t size = nandu_store_get(store, "boots", 5, &boots, sizeof boots);
    if (size < 0 && size != NANDU_ERR_NOT_FOUND)
        return size;
    boots++;
    error = nandu_store_put(store, "boots", 5, &boots, sizeof boots);
    if (error != 0)
        return error;
    say("boots", (long)boots);
    return nandu_store_close(store);
}
