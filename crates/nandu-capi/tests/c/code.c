/* A firmware that makes each call of a profile once. It is linked, never run: its size is that of the profile, with a driver of nothing. */
#include "nandu.h"

int main(void);

static int no_read(void *context, uint32_t page, uint32_t column, void *data, uint32_t size) {
    (void)context, (void)page, (void)column, (void)data, (void)size;
    return 0;
}

static int no_program(void *context, uint32_t page, uint32_t column, const void *data, uint32_t size) {
    (void)context, (void)page, (void)column, (void)data, (void)size;
    return 0;
}

static int no_program_tagged(void *context, uint32_t page, const void *data, const void *tag, uint32_t size) {
    (void)context, (void)page, (void)data, (void)tag, (void)size;
    return 0;
}

static int no_erase(void *context, uint32_t block, int mode) {
    (void)context, (void)block, (void)mode;
    return 0;
}

static int no_block(void *context, uint32_t block) {
    (void)context, (void)block;
    return 0;
}

void nandu_panic(void) {
    for (;;) {
    }
}

static uint64_t memory[8192];
static char buffer[512];
static volatile int sink;

#ifdef WITH_STORE
static void store(const nandu_chip *chip) {
    nandu_store *it;
#ifdef WITH_GROUP
    const nandu_store_options options = {.cache_size = 1024, .pending_size = 1024, .durability = NANDU_DURABLE_ON_SYNC};
#else
    const nandu_store_options options = {.cache_size = 1024};
#endif
    sink = nandu_store_open(&it, chip, &options, memory, sizeof memory);
    sink = nandu_store_put(it, buffer, 4, buffer, sizeof buffer);
    sink = nandu_store_get(it, buffer, 4, buffer, sizeof buffer);
    sink = nandu_store_delete(it, buffer, 4);
#ifdef WITH_GROUP
    nandu_cursor cursor;
    nandu_entry entry;
    nandu_edit edit = {buffer, 4, buffer, 4};
    nandu_stats stats;
    uint32_t snapshot;
    sink = nandu_store_format(&it, chip, &options, memory, sizeof memory);
    sink = nandu_store_batch(it, &edit, 1);
    sink = nandu_store_read(it, buffer, 4, 4, buffer, sizeof buffer);
    sink = nandu_store_sync(it);
    sink = nandu_store_merge(it);
    sink = nandu_store_idle(it, 1);
    sink = nandu_store_stats(it, &stats);
    sink = nandu_cursor_open(&cursor, it);
    sink = nandu_cursor_seek(&cursor, NANDU_SEEK_BELOW, buffer, 4);
    sink = nandu_cursor_next(&cursor, &entry);
    sink = nandu_cursor_previous(&cursor, &entry);
    sink = nandu_store_snapshot(it, &snapshot);
    sink = nandu_store_get_at(it, snapshot, buffer, 4, buffer, sizeof buffer);
    sink = nandu_store_release(it, snapshot);
    sink = nandu_store_close(it);
#endif
}
#endif

#ifdef WITH_FILES
static void files(const nandu_chip *chip) {
    nandu_fs *fs;
    nandu_file file;
    sink = nandu_fs_mount(&fs, chip, NULL, memory, sizeof memory);
    sink = nandu_file_open(&file, fs, buffer, NANDU_OPEN_READ | NANDU_OPEN_WRITE | NANDU_OPEN_CREATE);
    sink = nandu_file_read(&file, buffer, sizeof buffer);
    sink = nandu_file_write(&file, buffer, sizeof buffer);
    sink = nandu_file_sync(&file);
    sink = nandu_file_close(&file);
    sink = nandu_fs_rename(fs, buffer, buffer + 8, NANDU_RENAME_REPLACE);
    sink = nandu_fs_unlink(fs, buffer);
    sink = nandu_fs_unmount(fs);
#ifdef WITH_STORE
    nandu_dir dir;
    nandu_dirent entry;
    nandu_stat stat;
    nandu_statfs room;
    sink = nandu_fs_format(&fs, chip, NULL, NULL, memory, sizeof memory);
    sink = nandu_fs_mkdir(fs, buffer, 0755);
    sink = nandu_fs_rmdir(fs, buffer);
    sink = nandu_fs_stat(fs, buffer, &stat);
    sink = nandu_fs_statfs(fs, &room);
    sink = nandu_fs_idle(fs, 1);
    sink = nandu_file_truncate(&file, 0);
    sink = (int)nandu_file_seek(&file, 0, NANDU_FROM_END);
    sink = nandu_dir_open(&dir, fs, buffer);
    sink = nandu_dir_read(&dir, &entry);
    sink = nandu_fs_set_xattr(fs, 1, buffer, buffer, 4, 0);
    sink = nandu_fs_get_xattr(fs, 1, buffer, buffer, sizeof buffer);
    sink = nandu_fs_list_xattrs(fs, 1, buffer, sizeof buffer);
    sink = nandu_fs_remove_xattr(fs, 1, buffer);
#endif
}
#endif

int main(void) {
    const nandu_chip chip = {
        .geometry = {.page_size = 2048, .spare_size = 64, .tag_size = 16, .pages_per_block = 64, .block_count = 1024},
        .read = no_read,
        .program = no_program,
        .program_tagged = no_program_tagged,
        .erase = no_erase,
        .is_bad = no_block,
        .mark_bad = no_block,
    };
#ifdef WITH_STORE
    store(&chip);
#endif
#ifdef WITH_FILES
    files(&chip);
#endif
    return 0;
}

__attribute__((used, section(".vectors"))) static const void *const vectors[2] = {memory, (const void *)main};
