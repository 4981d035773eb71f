/* Two tasks on one store: each finds what it put, whatever the other does meanwhile. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "ram_chip.h"

#define ROUNDS 2000
#define KEYS 50u

static ram_chip ram;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t memory[(NANDU_STORE_MEMORY(RAM_PAGE_SIZE, RAM_BLOCK_COUNT, 1024u, 1024u) + 7u) / 8u];
static nandu_store *store;

void fail(const char *file, int line, const char *what, long found) {
    fprintf(stderr, "%s:%d: %s: %ld (%s)\n", file, line, what, found, nandu_error_name((int)found));
    exit(1);
}

static int take(void *context) {
    (void)context;
    return pthread_mutex_lock(&mutex) == 0 ? NANDU_OK : NANDU_ERR_OTHER;
}

static void give(void *context) {
    (void)context;
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void *task(void *name) {
    uint32_t values[KEYS] = {0}, state = *(const uint8_t *)name;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        const uint32_t at = next_random(&state) % KEYS;
        const uint8_t key[2] = {*(const uint8_t *)name, (uint8_t)at};
        uint32_t found = 0;
        EXPECT(nandu_store_get(store, key, sizeof key, &found, sizeof found), values[at] == 0 ? NANDU_ERR_NOT_FOUND : 4);
        CHECK(found == values[at]);
        values[at] = round;
        EXPECT(nandu_store_put(store, key, sizeof key, &round, sizeof round), NANDU_OK);
    }
    return NULL;
}

int main(void) {
    static const uint8_t names[2] = {1, 2};
    const nandu_store_options options = {.cache_size = 1024};
    nandu_store_info info;
    pthread_t tasks[2];
    ram_chip_make(&ram);
    nandu_chip chip = ram_chip_of(&ram);
    chip.lock = take;
    chip.unlock = give;
    EXPECT(nandu_store_format(&store, &chip, &options, memory, sizeof memory), NANDU_OK);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&tasks[i], NULL, task, (void *)&names[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(tasks[i], NULL) == 0);
    EXPECT(nandu_store_info_of(store, &info), NANDU_OK);
    CHECK(info.record_count > KEYS && info.record_count <= 2 * KEYS);
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
    EXPECT(nandu_store_close(store), NANDU_OK);
    return 0;
}
