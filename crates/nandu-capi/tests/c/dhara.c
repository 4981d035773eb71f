/* A port of Dhara mounts nandu: a store and files through the shim, with bad blocks and power cuts. */
#include <stdio.h>
#include <stdlib.h>

#include <nandu_dhara.h>

#include "check.h"
#include "dhara_port.h"

void fail(const char *file, int line, const char *what, long found) {
    fprintf(stderr, "%s:%d: %s: %ld (%s)\n", file, line, what, found, nandu_error_name((int)found));
    exit(1);
}

int main(void) {
    static uint64_t memory[8192];
    struct dhara_port port = {.nand = {.log2_page_size = 11, .log2_ppb = 6, .num_blocks = 40}};
    nandu_sim *sim = nandu_sim_new("w25n01gv", 40, 11);
    nandu_store *store;
    nandu_fs *fs;
    CHECK(sim != NULL);
    EXPECT(nandu_sim_mark_factory_bad(sim, 3), 0);
    EXPECT(nandu_sim_chip(sim, &port.chip), 0);
    CHECK(port.chip.geometry.page_size == 2048 && port.chip.geometry.pages_per_block == 64);
    const nandu_chip chip = nandu_dhara_chip(&port.nand);
    EXPECT(chip.program(chip.context, 0, 4, memory, 4), NANDU_ERR_NOT_ALIGNED);
    EXPECT(nandu_store_open(&store, &chip, NULL, memory, sizeof memory), NANDU_ERR_NOT_FORMATTED);
    EXPECT(nandu_store_format(&store, &chip, NULL, memory, sizeof memory), 0);
    uint32_t acknowledged = 0, random = 5, found = 0;
    EXPECT(nandu_store_put(store, "count", 5, &acknowledged, sizeof acknowledged), 0);
    EXPECT(nandu_store_close(store), 0);
    for (int cut = 0; cut < 200; cut++) {
        EXPECT(nandu_store_open(&store, &chip, NULL, memory, sizeof memory), 0);
        EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + next_random(&random) % 60, NANDU_TEAR_ANY), 0);
        uint32_t count = acknowledged;
        while (++count, nandu_store_put(store, "count", 5, &count, sizeof count) == 0)
            acknowledged = count;
        EXPECT(nandu_store_abandon(store), 0);
        EXPECT(nandu_sim_power_on(sim), 0);
        EXPECT(nandu_store_open(&store, &chip, NULL, memory, sizeof memory), 0);
        EXPECT(nandu_store_get(store, "count", 5, &found, sizeof found), sizeof found);
        CHECK(found == acknowledged || found == count);
        acknowledged = found;
        EXPECT(nandu_store_close(store), 0);
    }
    nandu_stats stats;
    EXPECT(nandu_store_open(&store, &chip, NULL, memory, sizeof memory), 0);
    EXPECT(nandu_store_stats(store, &stats), 0);
    CHECK(stats.bad_blocks == 1);
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
    EXPECT(nandu_store_close(store), 0);

    EXPECT(nandu_fs_format(&fs, &chip, NULL, NULL, memory, sizeof memory), 0);
    EXPECT(nandu_fs_mkdir(fs, "/dir", 0755), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    EXPECT(nandu_fs_mount(&fs, &chip, NULL, memory, sizeof memory), 0);
    nandu_stat stat;
    EXPECT(nandu_fs_stat(fs, "/dir", &stat), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    nandu_sim_free(sim);
    return 0;
}
