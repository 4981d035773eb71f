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

static uint64_t memory[8192];

/* Cuts the power in the middle of puts, so many times, with a port of this kind that `chip` drives. After each cut the store has to open; where
 * that says that the bus failed, also at the second try, `other` opens it. Returns how often it was so. */
static int cuts(struct dhara_port *port, nandu_sim *sim, const nandu_chip *chip, const nandu_chip *other, int count) {
    nandu_store *store;
    uint32_t acknowledged = 0, random = 5, found = 0;
    int refused = 0;
    EXPECT(nandu_store_format(&store, other, NULL, memory, sizeof memory), 0);
    EXPECT(nandu_store_put(store, "count", 5, &acknowledged, sizeof acknowledged), 0);
    EXPECT(nandu_store_close(store), 0);
    for (int cut = 0; cut < count; cut++) {
        EXPECT(nandu_store_open(&store, other, NULL, memory, sizeof memory), 0);
        EXPECT(nandu_sim_cut_at(sim, nandu_sim_operation_count(sim) + next_random(&random) % 60, NANDU_TEAR_ANY), 0);
        uint32_t value = acknowledged;
        while (++value, nandu_store_put(store, "count", 5, &value, sizeof value) == 0)
            acknowledged = value;
        EXPECT(nandu_store_abandon(store), 0);
        EXPECT(nandu_sim_power_on(sim), 0);
        port->last = UINT32_MAX;
        int error = nandu_store_open(&store, chip, NULL, memory, sizeof memory);
        if (error == NANDU_ERR_BUS) {
            EXPECT(nandu_store_open(&store, chip, NULL, memory, sizeof memory), NANDU_ERR_BUS);
            refused++;
            error = nandu_store_open(&store, other, NULL, memory, sizeof memory);
        }
        EXPECT(error, 0);
        EXPECT(nandu_store_get(store, "count", 5, &found, sizeof found), sizeof found);
        CHECK(found == acknowledged || found == value);
        acknowledged = found;
        EXPECT(nandu_store_close(store), 0);
    }
    return refused;
}

/* A port of each kind: what it answers when it is asked, 400 cuts, and a program that fails. */
static void port_of_kind(enum habit habit, int answer) {
    static uint8_t page[2048];
    struct dhara_port port = {.nand = {.log2_page_size = 11, .log2_ppb = 6, .num_blocks = 40}, .habit = habit};
    nandu_sim *sim = nandu_sim_new("w25n01gv", 40, 11);
    nandu_store *store;
    nandu_stats stats;
    CHECK(sim != NULL);
    port.last = port.twice = UINT32_MAX;
    EXPECT(nandu_sim_mark_factory_bad(sim, 3), 0);
    EXPECT(nandu_sim_chip(sim, &port.chip), 0);
    EXPECT(nandu_dhara_ask(&port.nand, 7, page), answer);
    const nandu_chip says = nandu_dhara_chip(&port.nand), silent = nandu_dhara_chip_silent(&port.nand);
    const nandu_chip *chip = answer == NANDU_DHARA_SILENT ? &silent : &says;
    EXPECT(cuts(&port, sim, chip, chip, 400), 0);
    EXPECT(nandu_store_open(&store, chip, NULL, memory, sizeof memory), 0);
    port.fails_at = port.programs + 20;
    for (uint32_t put = 0; put < 40; put++)
        EXPECT(nandu_store_put(store, "count", 5, &put, sizeof put), 0);
    EXPECT(nandu_store_stats(store, &stats), 0);
    EXPECT(stats.bad_blocks, 2);
    EXPECT(nandu_store_verify(store, NULL, NULL), 0);
    EXPECT(nandu_store_close(store), 0);
    if (answer == NANDU_DHARA_SILENT)
        CHECK(cuts(&port, sim, &says, &silent, 100) > 10);
    nandu_sim_free(sim);
}

/* Outages of the bus, of so many reads from each read of an open on, on a port that says nothing of them: how many volumes have lost what was
 * acknowledged when the bus works again. */
static int outages(int is_silent, uint32_t count) {
    struct dhara_port port = {.nand = {.log2_page_size = 11, .log2_ppb = 6, .num_blocks = 40}, .habit = SILENT};
    nandu_sim *sim = nandu_sim_new("w25n01gv", 40, 11);
    nandu_store *store;
    uint32_t found = 0, reads = 1;
    int lost = 0;
    CHECK(sim != NULL);
    port.last = port.twice = UINT32_MAX;
    EXPECT(nandu_sim_chip(sim, &port.chip), 0);
    const nandu_chip says = nandu_dhara_chip(&port.nand), silent = nandu_dhara_chip_silent(&port.nand);
    const nandu_chip *chip = is_silent ? &silent : &says;
    EXPECT(nandu_store_format(&store, chip, NULL, memory, sizeof memory), 0);
    for (uint32_t put = 1; put <= 300; put++)
        EXPECT(nandu_store_put(store, "count", 5, &put, sizeof put), 0);
    EXPECT(nandu_store_abandon(store), 0);
    for (uint32_t from = 0; from < reads; from++) {
        nandu_sim *copy = nandu_sim_clone(sim);
        EXPECT(nandu_sim_chip(copy, &port.chip), 0);
        port.reads = 0;
        port.fails_from = from;
        port.fails_to = from + count;
        int error = nandu_store_open(&store, chip, NULL, memory, sizeof memory);
        reads = port.reads > reads ? port.reads : reads;
        port.fails_to = 0;
        if (error == 0)
            EXPECT(nandu_store_abandon(store), 0);
        else if (!is_silent)
            EXPECT(error, NANDU_ERR_BUS);
        error = nandu_store_open(&store, chip, NULL, memory, sizeof memory);
        if (error == 0) {
            error = nandu_store_get(store, "count", 5, &found, sizeof found) == (int32_t)sizeof found && found == 300 ? 0 : 1;
            EXPECT(nandu_store_abandon(store), 0);
        }
        lost += error != 0;
        nandu_sim_free(copy);
    }
    CHECK(reads > 10 && reads < 1000);
    nandu_sim_free(sim);
    return lost;
}

int main(void) {
    struct dhara_port port = {.nand = {.log2_page_size = 11, .log2_ppb = 6, .num_blocks = 40}};
    nandu_sim *sim = nandu_sim_new("w25n01gv", 40, 11);
    nandu_store *store;
    nandu_fs *fs;
    CHECK(sim != NULL);
    port.last = port.twice = UINT32_MAX;
    EXPECT(nandu_sim_chip(sim, &port.chip), 0);
    CHECK(port.chip.geometry.page_size == 2048 && port.chip.geometry.pages_per_block == 64);
    const nandu_chip chip = nandu_dhara_chip(&port.nand);
    EXPECT(chip.program(chip.context, 0, 4, memory, 4), NANDU_ERR_NOT_ALIGNED);
    EXPECT(nandu_store_open(&store, &chip, NULL, memory, sizeof memory), NANDU_ERR_NOT_FORMATTED);

    EXPECT(nandu_fs_format(&fs, &chip, NULL, NULL, memory, sizeof memory), 0);
    EXPECT(nandu_fs_mkdir(fs, "/dir", 0755), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    EXPECT(nandu_fs_mount(&fs, &chip, NULL, memory, sizeof memory), 0);
    nandu_stat stat;
    EXPECT(nandu_fs_stat(fs, "/dir", &stat), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    nandu_sim_free(sim);

    port_of_kind(SAYS, NANDU_DHARA_SAYS);
    port_of_kind(SILENT, NANDU_DHARA_SILENT);
    port_of_kind(RECOVERS, NANDU_DHARA_SAYS);

    /* Where the bus can fail without a word, the constructor for silent ports takes an outage for pages that are lost, as its header says. */
    for (uint32_t count = 1; count <= 1000; count *= 10)
        EXPECT(outages(0, count), 0);
    CHECK(outages(1, 3) > 0);
    return 0;
}
