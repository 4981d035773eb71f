/* File systems: every call, and every call used wrongly. */
#include "api.h"
#include "check.h"

#define CACHE_SIZE 1024u
#define PENDING_SIZE 1024u
#define OPEN_MAX 4u

static uint64_t memory[(NANDU_FS_MEMORY(RAM_PAGE_SIZE, RAM_PAGES_PER_BLOCK, RAM_BLOCK_COUNT, CACHE_SIZE, PENDING_SIZE, OPEN_MAX) + 7u) / 8u];
static uint64_t other[(NANDU_FS_MEMORY(RAM_PAGE_SIZE, RAM_PAGES_PER_BLOCK, RAM_BLOCK_COUNT, CACHE_SIZE, PENDING_SIZE, OPEN_MAX) + 7u) / 8u];
static uint8_t written[9000], found[9000];

static const nandu_fs_options options = {.cache_size = CACHE_SIZE, .pending_size = PENDING_SIZE, .open_max = OPEN_MAX};
static const nandu_fs_format_options begin = {.hash_key = {1, 2, 3}, .root_mode = 0750, .now = {.seconds = 1700000000}};

static nandu_fs *format(ram_chip *ram, uint64_t *at, size_t size) {
    nandu_fs *fs = NULL;
    ram_chip_make(ram);
    const nandu_chip chip = ram_chip_of(ram);
    stack_begin();
    EXPECT(nandu_fs_format(&fs, &chip, &options, &begin, at, size), 0);
    stack_end("format");
    return fs;
}

static void content(nandu_fs *fs) {
    nandu_file file;
    uint64_t ino;
    for (size_t at = 0; at < sizeof written; at++)
        written[at] = (uint8_t)(at * 5 + at / 256);
    EXPECT(nandu_file_open(&file, fs, "/log", NANDU_OPEN_READ), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_file_read(&file, found, 1), NANDU_ERR_HANDLE);
    stack_begin();
    EXPECT(nandu_file_open(&file, fs, "/log", NANDU_OPEN_READ | NANDU_OPEN_WRITE | NANDU_OPEN_CREATE), 0);
    stack_end("create");
    stack_begin();
    EXPECT(nandu_file_write(&file, written, 5000), 5000);
    stack_end("write");
    EXPECT(nandu_file_write(&file, written + 5000, 4000), 4000);
    EXPECT(nandu_file_size(&file), 9000);
    stack_begin();
    EXPECT(nandu_file_sync(&file), 0);
    stack_end("fsync");
    EXPECT(nandu_file_read(&file, found, 1), 0);
    EXPECT(nandu_file_seek(&file, 0, NANDU_FROM_START), 0);
    stack_begin();
    EXPECT(nandu_file_read(&file, found, sizeof found), sizeof found);
    stack_end("read");
    CHECK(same(written, found, sizeof found));
    EXPECT(nandu_file_seek(&file, -8, NANDU_FROM_END), 8992);
    EXPECT(nandu_file_seek(&file, 4, NANDU_FROM_POSITION), 8996);
    EXPECT(nandu_file_read(&file, found, 100), 4);
    EXPECT(nandu_file_seek(&file, -1, NANDU_FROM_START), NANDU_ERR_RANGE);
    EXPECT(nandu_file_seek(&file, INT64_MAX, NANDU_FROM_END), NANDU_ERR_RANGE);
    EXPECT(nandu_file_seek(&file, 0, 3), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_truncate(&file, 10), 0);
    EXPECT(nandu_file_seek(&file, 20, NANDU_FROM_START), 20);
    EXPECT(nandu_file_write(&file, "end", 3), 3);
    EXPECT(nandu_file_ino(&file, &ino), 0);
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_file_close(&file), NANDU_ERR_HANDLE);

    /* By number; a hole between, and the end. */
    EXPECT(nandu_file_open_at(&file, fs, ino, NANDU_OPEN_WRITE | NANDU_OPEN_APPEND), 0);
    EXPECT(nandu_file_write(&file, "+", 1), 1);
    EXPECT(nandu_file_read(&file, found, 1), NANDU_ERR_ACCESS);
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_fs_read_at(fs, ino, 0, found, sizeof found), 24);
    CHECK(same(found, written, 10) && same(found + 10, "\0\0\0\0\0\0\0\0\0\0end+", 14));
    EXPECT(nandu_fs_write_at(fs, ino, 1, "two", 3), 3);
    EXPECT(nandu_fs_truncate_at(fs, ino, 4), 0);
    EXPECT(nandu_file_open_at(&file, fs, ino, NANDU_OPEN_READ), 0);
    EXPECT(nandu_file_write(&file, "+", 1), NANDU_ERR_ACCESS);
    EXPECT(nandu_file_truncate(&file, 0), NANDU_ERR_ACCESS);
    EXPECT(nandu_file_read(&file, found, sizeof found), 4);
    CHECK(same(found + 1, "two", 3));
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_file_open(&file, fs, "log", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE | NANDU_OPEN_EXCLUSIVE), NANDU_ERR_EXISTS);
    EXPECT(nandu_file_open(&file, fs, "log", NANDU_OPEN_WRITE | NANDU_OPEN_TRUNCATE), 0);
    EXPECT(nandu_file_size(&file), 0);
    EXPECT(nandu_file_close(&file), 0);

    /* As many as there is memory for. */
    nandu_file files[OPEN_MAX + 1];
    for (unsigned i = 0; i <= OPEN_MAX; i++) {
        const char name[2] = {(char)('a' + i), 0};
        EXPECT(nandu_file_open(&files[i], fs, name, NANDU_OPEN_WRITE | NANDU_OPEN_CREATE), i < OPEN_MAX ? 0 : NANDU_ERR_TOO_MANY_OPEN);
    }
    /* One that has lost its name stays until it is closed. */
    EXPECT(nandu_file_write(&files[0], "kept", 4), 4);
    stack_begin();
    EXPECT(nandu_fs_unlink(fs, "a"), 0);
    stack_end("unlink");
    EXPECT(nandu_file_size(&files[0]), 4);
    for (unsigned i = 0; i < OPEN_MAX; i++)
        EXPECT(nandu_file_close(&files[i]), 0);
    EXPECT(nandu_fs_lookup(fs, "a", &ino), NANDU_ERR_NOT_FOUND);
    for (unsigned i = 1; i <= OPEN_MAX; i++) {
        const char name[2] = {(char)('a' + i), 0};
        EXPECT(nandu_fs_unlink(fs, name), 0);
    }
}

static void names(nandu_fs *fs) {
    uint64_t etc, file, again;
    nandu_stat stat;
    nandu_dir dir;
    nandu_dirent entry;
    EXPECT(nandu_fs_set_now(fs, 1800000000, 5000000), 0);
    stack_begin();
    EXPECT(nandu_fs_mkdir(fs, "/etc", 0755), 0);
    stack_end("mkdir");
    EXPECT(nandu_fs_mkdir(fs, "/etc", 0755), NANDU_ERR_EXISTS);
    EXPECT(nandu_fs_mkdir(fs, "/usr/bin", 0755), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_fs_mkdir(fs, "/", 0755), NANDU_ERR_NAME);
    EXPECT(nandu_fs_mkdir(fs, "/dir", 0100000), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_lookup(fs, "etc", &etc), 0);
    EXPECT(nandu_fs_create_at(fs, etc, "new", 0600, &file), 0);
    EXPECT(nandu_fs_create_at(fs, etc, "other", 0644, NULL), 0);
    EXPECT(nandu_fs_mkdir_at(fs, etc, "deep", 0700, NULL), 0);
    EXPECT(nandu_fs_lookup_at(fs, etc, "new", &again), 0);
    CHECK(again == file);
    EXPECT(nandu_fs_lookup_at(fs, etc, "..", &again), 0);
    CHECK(again == NANDU_ROOT);
    EXPECT(nandu_fs_stat(fs, "/etc/new", &stat), 0);
    CHECK(stat.ino == file && stat.type == NANDU_TYPE_FILE && stat.mode == 0100600 && stat.nlink == 1 && stat.size == 0
          && stat.btime.seconds == 1800000000 && stat.btime.nanoseconds == 5000000);
    EXPECT(nandu_fs_stat_at(fs, NANDU_ROOT, &stat), 0);
    CHECK(stat.type == NANDU_TYPE_DIRECTORY && stat.mode == 040750 && stat.btime.seconds == 1700000000);
    EXPECT(nandu_fs_stat_at(fs, 999999, &stat), NANDU_ERR_NO_INODE);

    EXPECT(nandu_dir_open(&dir, fs, "/etc"), 0);
    unsigned met = 0;
    stack_begin();
    while (nandu_dir_read(&dir, &entry) == 1) {
        CHECK(entry.type == (same(entry.name, "new", 4) || same(entry.name, "other", 6) ? NANDU_TYPE_FILE : NANDU_TYPE_DIRECTORY));
        CHECK(!same(entry.name, "new", 4) || entry.ino == file);
        met++;
    }
    stack_end("readdir");
    CHECK(met == 5);
    EXPECT(nandu_dir_read(&dir, &entry), 0);
    EXPECT(nandu_dir_rewind(&dir), 0);
    EXPECT(nandu_dir_read(&dir, &entry), 1);
    CHECK(same(entry.name, ".", 2));
    EXPECT(nandu_dir_close(&dir), 0);
    EXPECT(nandu_dir_read(&dir, &entry), NANDU_ERR_HANDLE);
    EXPECT(nandu_dir_open_at(&dir, fs, file), NANDU_ERR_NOT_DIRECTORY);
    EXPECT(nandu_dir_open_at(&dir, fs, etc), 0);
    EXPECT(nandu_dir_close(&dir), 0);

    stack_begin();
    EXPECT(nandu_fs_rename(fs, "/etc/new", "/settings", NANDU_RENAME_REPLACE), 0);
    stack_end("rename");
    EXPECT(nandu_fs_rename(fs, "/etc/new", "/settings", NANDU_RENAME_REPLACE), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_fs_rename(fs, "/etc/other", "/settings", NANDU_RENAME_NO_REPLACE), NANDU_ERR_EXISTS);
    EXPECT(nandu_fs_rename(fs, "/etc", "/etc/deep/etc", NANDU_RENAME_REPLACE), NANDU_ERR_LOOP);
    EXPECT(nandu_fs_rename(fs, "/etc/other", "/settings", 3), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rename_at(fs, etc, "other", NANDU_ROOT, "settings", NANDU_RENAME_EXCHANGE), 0);
    EXPECT(nandu_fs_lookup(fs, "/etc/other", &again), 0);
    CHECK(again == file);
    EXPECT(nandu_fs_rmdir(fs, "/etc"), NANDU_ERR_NOT_EMPTY);
    EXPECT(nandu_fs_unlink(fs, "/etc"), NANDU_ERR_IS_DIRECTORY);
    EXPECT(nandu_fs_rmdir(fs, "/settings"), NANDU_ERR_NOT_DIRECTORY);
    EXPECT(nandu_fs_unlink_at(fs, etc, "other"), 0);
    EXPECT(nandu_fs_rmdir_at(fs, etc, "deep"), 0);
    EXPECT(nandu_fs_rmdir(fs, "/etc"), 0);
    EXPECT(nandu_fs_unlink(fs, "/etc/other"), NANDU_ERR_NOT_FOUND);
}

static void attributes(nandu_fs *fs) {
    static unsigned char all[65537];
    uint64_t ino;
    char text[32];
    EXPECT(nandu_fs_lookup(fs, "/settings", &ino), 0);
    EXPECT(nandu_fs_get_xattr(fs, ino, "user.unit", text, sizeof text), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.unit", "kelvin", 6, NANDU_XATTR_REPLACE), NANDU_ERR_NOT_FOUND);
    stack_begin();
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.unit", "kelvin", 6, NANDU_XATTR_SET), 0);
    stack_end("setxattr");
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.unit", "kelvin", 6, NANDU_XATTR_CREATE), NANDU_ERR_EXISTS);
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.unit", "kelvin", 6, 3), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.all", all, sizeof all, NANDU_XATTR_SET), NANDU_ERR_XATTR_SIZE);
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.all", all, sizeof all - 1, NANDU_XATTR_SET), 0);
    all[65535] = 7;
    EXPECT(nandu_fs_get_xattr(fs, ino, "user.all", all, sizeof all), 65536);
    CHECK(all[65535] == 0);
    EXPECT(nandu_fs_remove_xattr(fs, ino, "user.all"), 0);
    EXPECT(nandu_fs_get_xattr(fs, ino, "user.unit", NULL, 0), 6);
    EXPECT(nandu_fs_get_xattr(fs, ino, "user.unit", text, 5), NANDU_ERR_BUFFER);
    EXPECT(nandu_fs_get_xattr(fs, ino, "user.unit", text, sizeof text), 6);
    CHECK(same(text, "kelvin", 6));
    EXPECT(nandu_fs_set_xattr(fs, ino, "user.a", "", 0, NANDU_XATTR_SET), 0);
    EXPECT(nandu_fs_list_xattrs(fs, ino, NULL, 0), 17);
    EXPECT(nandu_fs_list_xattrs(fs, ino, text, 16), NANDU_ERR_BUFFER);
    EXPECT(nandu_fs_list_xattrs(fs, ino, text, sizeof text), 17);
    CHECK(same(text, "user.unit\0user.a", 17) || same(text, "user.a\0user.unit", 17));
    EXPECT(nandu_fs_remove_xattr(fs, ino, "user.unit"), 0);
    EXPECT(nandu_fs_remove_xattr(fs, ino, "user.unit"), NANDU_ERR_NOT_FOUND);
}

#ifdef WITH_SNAPSHOTS
/* What a snapshot keeps is mounted and read while what there is now has changed. */
static void snapshots(ram_chip *ram) {
    nandu_fs *fs = format(ram, memory, sizeof memory);
    const nandu_chip chip = ram_chip_of(ram);
    uint32_t snapshot, numbers[2] = {0, 0};
    uint64_t ino;
    nandu_file file;
    EXPECT(nandu_file_open(&file, fs, "state", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE), 0);
    EXPECT(nandu_file_write(&file, "before", 6), 6);
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_fs_snapshot(fs, NULL), NANDU_ERR_ARGUMENT);
    stack_begin();
    EXPECT(nandu_fs_snapshot(fs, &snapshot), 0);
    stack_end("fs snapshot");
    EXPECT(nandu_file_open(&file, fs, "state", NANDU_OPEN_WRITE), 0);
    EXPECT(nandu_file_write(&file, "after!", 6), 6);
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_fs_mkdir(fs, "new", 0755), 0);
    EXPECT(nandu_fs_snapshots(fs, numbers, 2), 1);
    CHECK(snapshot > 0 && numbers[0] == snapshot);
    EXPECT(nandu_fs_unmount(fs), 0);

    nandu_fs_options then = options;
    then.snapshot = snapshot;
    EXPECT(nandu_fs_mount(&fs, &chip, &then, memory, sizeof memory), 0);
    EXPECT(nandu_file_open(&file, fs, "state", NANDU_OPEN_READ), 0);
    EXPECT(nandu_file_read(&file, found, sizeof found), 6);
    for (unsigned i = 0; i < 6; i++)
        CHECK(found[i] == (uint8_t)"before"[i]);
    EXPECT(nandu_file_close(&file), 0);
    EXPECT(nandu_fs_lookup(fs, "new", &ino), NANDU_ERR_NOT_FOUND);
    EXPECT(nandu_fs_mkdir(fs, "dir", 0755), NANDU_ERR_READ_ONLY);
    EXPECT(nandu_fs_unmount(fs), 0);

    EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, sizeof memory), 0);
    EXPECT(nandu_fs_lookup(fs, "new", &ino), 0);
    EXPECT(nandu_fs_release(fs, snapshot), 0);
    EXPECT(nandu_fs_release(fs, snapshot), NANDU_ERR_NO_SNAPSHOT);
    EXPECT(nandu_fs_snapshots(fs, numbers, 2), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    EXPECT(nandu_fs_mount(&fs, &chip, &then, memory, sizeof memory), NANDU_ERR_NO_SNAPSHOT);
}
#endif

/* A file that takes the place of another by a rename is there wholly, whenever the power goes. */
static void cuts(ram_chip *ram) {
    uint32_t random = 7, version = 0, acknowledged = 0;
    nandu_fs *fs = format(ram, memory, sizeof memory);
    const nandu_chip chip = ram_chip_of(ram);
    nandu_file file;
    EXPECT(nandu_fs_unmount(fs), 0);
    for (int cut = 0; cut < 60; cut++) {
        EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, sizeof memory), 0);
        ram->cut_in = 1 + next_random(&random) % 60;
        int error;
        do {
            version++;
            error = nandu_file_open(&file, fs, "draft", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE | NANDU_OPEN_TRUNCATE);
            if (error == 0) {
                for (uint32_t at = 0; at < 3000; at += 4)
                    *(uint32_t *)(void *)(found + at) = version;
                const int32_t size = nandu_file_write(&file, found, 3000);
                CHECK(size < 0 || size == 3000);
                const int closed = nandu_file_close(&file);
                error = size < 0 ? size : closed;
            }
            if (error == 0)
                error = nandu_fs_rename(fs, "draft", "state", NANDU_RENAME_REPLACE);
            if (error == 0)
                acknowledged = version;
        } while (error == 0);
        CHECK(ram->is_off);
        EXPECT(nandu_fs_abandon(fs), 0);
        ram->is_off = ram->is_begun = 0;
        stack_begin();
        EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, sizeof memory), 0);
        stack_end("mount");
        error = nandu_file_open(&file, fs, "state", NANDU_OPEN_READ);
        if (error == 0) {
            EXPECT(nandu_file_read(&file, found, sizeof found), 3000);
            const uint32_t there = *(const uint32_t *)(const void *)found;
            for (uint32_t at = 0; at < 3000; at += 4)
                CHECK(*(const uint32_t *)(const void *)(found + at) == there);
            CHECK(there == acknowledged || there == version);
            acknowledged = there;
            EXPECT(nandu_file_close(&file), 0);
        } else {
            EXPECT(error, NANDU_ERR_NOT_FOUND);
            CHECK(acknowledged == 0);
        }
        EXPECT(nandu_fs_unmount(fs), 0);
    }
}

static uint64_t digest_of(nandu_fs *fs) {
    uint64_t digest = 0;
    stack_begin();
    EXPECT(nandu_fs_digest(fs, &digest), 0);
    stack_end("digest");
    return digest;
}

/* The digest is of what names lead to, and of nothing that was. */
static void digests(nandu_fs *fs) {
    const uint64_t before = digest_of(fs);
    uint64_t file;
    EXPECT(nandu_fs_create_at(fs, NANDU_ROOT, "digest", 0644, &file), 0);
    const uint64_t empty = digest_of(fs);
    EXPECT(nandu_fs_write_at(fs, file, 10000, "1", 1), 1);
    const uint64_t one = digest_of(fs);
    EXPECT(nandu_fs_rename(fs, "digest", "other", 0), 0);
    const uint64_t renamed = digest_of(fs);
    CHECK(empty != before && one != before && one != empty && renamed != one);
    EXPECT(nandu_fs_set_now(fs, 1900000000, 0), 0);
    EXPECT(nandu_fs_write_at(fs, file, 0, "\0\0", 2), 2);
    CHECK(digest_of(fs) == renamed);
    EXPECT(nandu_fs_sync(fs), 0);
    CHECK(digest_of(fs) == renamed);
    EXPECT(nandu_fs_unlink(fs, "other"), 0);
    CHECK(digest_of(fs) == before);
}

void test_files(ram_chip *first, ram_chip *second) {
    nandu_fs *fs = format(first, memory, sizeof memory), *twin;
    nandu_statfs room;
    nandu_stats stats;
    uint64_t ino;
    content(fs);
    names(fs);
    attributes(fs);
    EXPECT(nandu_fs_statfs(fs, &room), 0);
    CHECK(room.block_size == RAM_PAGE_SIZE && room.name_size_max == 255 && room.blocks_available > 0 && room.blocks_free <= room.blocks);
    EXPECT(nandu_fs_stats(fs, &stats), 0);
    CHECK(stats.programs > 0 && stats.bad_blocks == 1);
    EXPECT(nandu_fs_sync(fs), 0);
    CHECK(nandu_fs_idle(fs, 10) >= 0);
    EXPECT(nandu_fs_verify(fs, NULL, 0, NULL, NULL), 0);
    EXPECT(nandu_fs_verify(fs, found, sizeof found, NULL, NULL), 0);
    digests(fs);
    twin = format(second, other, sizeof other);
    EXPECT(nandu_fs_lookup(twin, "settings", &ino), NANDU_ERR_NOT_FOUND);
    stack_begin();
    EXPECT(nandu_fs_unmount(fs), 0);
    stack_end("unmount");
    EXPECT(nandu_fs_mkdir(twin, "dir", 0755), 0);
    EXPECT(nandu_fs_unmount(twin), 0);
    const nandu_chip chip = ram_chip_of(first);
    EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, sizeof memory), 0);
    EXPECT(nandu_fs_lookup(fs, "settings", &ino), 0);
    EXPECT(nandu_fs_stats(fs, &stats), 0);
    CHECK(stats.was_cut == 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    cuts(first);
#ifdef WITH_SNAPSHOTS
    snapshots(second);
#endif
    say("files_memory", (long)nandu_fs_memory(&chip, &options));
}

static void opens(ram_chip *ram) {
    nandu_fs *fs;
    ram_chip_make(ram);
    const nandu_chip chip = ram_chip_of(ram);
    const size_t required = nandu_fs_memory(&chip, &options);
    CHECK(required > 0 && required <= sizeof memory);
    EXPECT(nandu_fs_mount(&fs, &chip, &options, memory, sizeof memory), NANDU_ERR_NOT_FORMATTED);
    CHECK(fs == NULL);
    EXPECT(nandu_fs_mount(NULL, &chip, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_mount(&fs, NULL, &options, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_mount(&fs, &chip, &options, NULL, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_format(NULL, &chip, &options, NULL, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_format(&fs, NULL, &options, NULL, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_format(&fs, &chip, &options, NULL, NULL, sizeof memory), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_format(&fs, &chip, &options, NULL, memory, required - 1), NANDU_ERR_MEMORY);
    EXPECT(nandu_fs_memory(NULL, &options), 0);
    CHECK(nandu_fs_memory(&chip, NULL) > required);
    nandu_fs_format_options odd = begin;
    odd.now.nanoseconds = 1000000000;
    EXPECT(nandu_fs_format(&fs, &chip, &options, &odd, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    nandu_fs_options strange = options;
    strange.read_only = 2;
    EXPECT(nandu_fs_mount(&fs, &chip, &strange, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    strange = options;
    strange.commit_twice = 2;
    EXPECT(nandu_fs_mount(&fs, &chip, &strange, memory, sizeof memory), NANDU_ERR_ARGUMENT);
    strange = options;
    strange.pending_size = UINT32_MAX;
    EXPECT(nandu_fs_memory(&chip, &strange), 0);
    EXPECT(nandu_fs_format(&fs, &chip, &options, NULL, memory, required), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    strange = options;
    strange.read_only = 1;
    EXPECT(nandu_fs_mount(&fs, &chip, &strange, memory, sizeof memory), 0);
    EXPECT(nandu_fs_mkdir(fs, "dir", 0755), NANDU_ERR_READ_ONLY);
    EXPECT(nandu_fs_unmount(fs), 0);

    /* A volume of the other kind. */
    nandu_store *store;
    const nandu_store_options records = {.cache_size = 1};
    EXPECT(nandu_store_open(&store, &chip, &records, memory, sizeof memory), NANDU_ERR_OTHER_FORMAT);
    CHECK(store == NULL);
}

/* Every call with this handle, which is none that can be used. */
static void no_handle(nandu_fs *fs, int error) {
    char text[8];
    uint64_t ino;
    nandu_file file;
    nandu_dir dir;
    nandu_stat stat;
    nandu_statfs room;
    nandu_stats stats;
    EXPECT(nandu_fs_set_now(fs, 0, 0), error);
    EXPECT(nandu_fs_sync(fs), error);
    EXPECT(nandu_fs_idle(fs, 1), error);
    EXPECT(nandu_fs_stats(fs, &stats), error);
    EXPECT(nandu_fs_statfs(fs, &room), error);
    EXPECT(nandu_fs_verify(fs, NULL, 0, NULL, NULL), error);
    EXPECT(nandu_fs_digest(fs, &ino), error);
    EXPECT(nandu_fs_stat(fs, "", &stat), error);
    EXPECT(nandu_fs_stat_at(fs, NANDU_ROOT, &stat), error);
    EXPECT(nandu_fs_lookup(fs, "", &ino), error);
    EXPECT(nandu_fs_lookup_at(fs, NANDU_ROOT, "a", &ino), error);
    EXPECT(nandu_fs_create_at(fs, NANDU_ROOT, "a", 0644, &ino), error);
    EXPECT(nandu_fs_mkdir(fs, "a", 0755), error);
    EXPECT(nandu_fs_mkdir_at(fs, NANDU_ROOT, "a", 0755, &ino), error);
    EXPECT(nandu_fs_unlink(fs, "a"), error);
    EXPECT(nandu_fs_unlink_at(fs, NANDU_ROOT, "a"), error);
    EXPECT(nandu_fs_rmdir(fs, "a"), error);
    EXPECT(nandu_fs_rmdir_at(fs, NANDU_ROOT, "a"), error);
    EXPECT(nandu_fs_rename(fs, "a", "b", 0), error);
    EXPECT(nandu_fs_rename_at(fs, NANDU_ROOT, "a", NANDU_ROOT, "b", 0), error);
    EXPECT(nandu_fs_read_at(fs, 2, 0, text, sizeof text), error);
    EXPECT(nandu_fs_write_at(fs, 2, 0, text, sizeof text), error);
    EXPECT(nandu_fs_truncate_at(fs, 2, 0), error);
    EXPECT(nandu_fs_get_xattr(fs, NANDU_ROOT, "a", text, sizeof text), error);
    EXPECT(nandu_fs_set_xattr(fs, NANDU_ROOT, "a", text, sizeof text, 0), error);
    EXPECT(nandu_fs_remove_xattr(fs, NANDU_ROOT, "a"), error);
    EXPECT(nandu_fs_list_xattrs(fs, NANDU_ROOT, text, sizeof text), error);
    EXPECT(nandu_file_open(&file, fs, "a", NANDU_OPEN_READ), error);
    EXPECT(nandu_file_open_at(&file, fs, 2, NANDU_OPEN_READ), error);
    EXPECT(nandu_dir_open(&dir, fs, ""), error);
    EXPECT(nandu_dir_open_at(&dir, fs, NANDU_ROOT), error);
    EXPECT(nandu_fs_unmount(fs), error);
    EXPECT(nandu_fs_abandon(fs), error);
}

/* Every call on a file and a directory, none of which can be used. */
static void no_file(nandu_file *file, nandu_dir *dir, int error) {
    char text[8];
    uint64_t ino;
    nandu_dirent entry;
    EXPECT(nandu_file_read(file, text, sizeof text), error);
    EXPECT(nandu_file_write(file, text, sizeof text), error);
    EXPECT(nandu_file_seek(file, 0, NANDU_FROM_START), error);
    EXPECT(nandu_file_size(file), error);
    EXPECT(nandu_file_truncate(file, 0), error);
    EXPECT(nandu_file_sync(file), error);
    EXPECT(nandu_file_ino(file, &ino), error);
    EXPECT(nandu_file_close(file), error);
    EXPECT(nandu_dir_read(dir, &entry), error);
    EXPECT(nandu_dir_rewind(dir), error);
}

static void nulls(nandu_fs *fs) {
    char text[8];
    uint64_t ino;
    nandu_file file;
    nandu_dir dir;
    nandu_stat stat;
    EXPECT(nandu_fs_stats(fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_statfs(fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_verify(fs, NULL, 1, NULL, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_digest(fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_stat(fs, NULL, &stat), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_stat(fs, "", NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_stat_at(fs, NANDU_ROOT, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_lookup(fs, NULL, &ino), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_lookup(fs, "", NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_lookup_at(fs, NANDU_ROOT, NULL, &ino), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_lookup_at(fs, NANDU_ROOT, ".", NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_create_at(fs, NANDU_ROOT, NULL, 0644, &ino), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_mkdir(fs, NULL, 0755), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_mkdir_at(fs, NANDU_ROOT, NULL, 0755, &ino), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_unlink(fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_unlink_at(fs, NANDU_ROOT, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rmdir(fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rmdir_at(fs, NANDU_ROOT, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rename(fs, NULL, "b", 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rename(fs, "a", NULL, 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rename_at(fs, NANDU_ROOT, NULL, NANDU_ROOT, "b", 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_rename_at(fs, NANDU_ROOT, "a", NANDU_ROOT, NULL, 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_create_at(fs, NANDU_ROOT, "file", 0644, &ino), 0);
    EXPECT(nandu_fs_read_at(fs, ino, 0, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_write_at(fs, ino, 0, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_get_xattr(fs, ino, NULL, text, sizeof text), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_get_xattr(fs, ino, "a", NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_set_xattr(fs, ino, NULL, text, 1, 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_set_xattr(fs, ino, "a", NULL, 1, 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_remove_xattr(fs, ino, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_fs_list_xattrs(fs, ino, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(NULL, fs, "file", NANDU_OPEN_READ), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(&file, fs, NULL, NANDU_OPEN_READ), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(&file, fs, "file", 0), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(&file, fs, "file", NANDU_OPEN_READ | NANDU_OPEN_TRUNCATE), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(&file, fs, "file", NANDU_OPEN_READ | 64), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open(&file, fs, "", NANDU_OPEN_READ), NANDU_ERR_IS_DIRECTORY);
    EXPECT(nandu_file_open_at(NULL, fs, ino, NANDU_OPEN_READ), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open_at(&file, fs, ino, NANDU_OPEN_WRITE | NANDU_OPEN_CREATE), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_open_at(&file, fs, NANDU_ROOT, NANDU_OPEN_READ), NANDU_ERR_IS_DIRECTORY);
    EXPECT(nandu_file_open_at(&file, fs, 0, NANDU_OPEN_READ), NANDU_ERR_NO_INODE);
    EXPECT(nandu_dir_open(NULL, fs, ""), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_dir_open(&dir, fs, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_dir_open_at(NULL, fs, NANDU_ROOT), NANDU_ERR_ARGUMENT);
    no_file(NULL, NULL, NANDU_ERR_ARGUMENT);
    EXPECT(nandu_dir_close(NULL), NANDU_ERR_ARGUMENT);
    const nandu_file zero = {0};
    const nandu_dir nothing = {0};
    file = zero;
    dir = nothing;
    no_file(&file, &dir, NANDU_ERR_HANDLE);
    EXPECT(nandu_dir_close(&dir), NANDU_ERR_HANDLE);
    EXPECT(nandu_file_open(&file, fs, "file", NANDU_OPEN_READ | NANDU_OPEN_WRITE), 0);
    EXPECT(nandu_file_read(&file, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_write(&file, NULL, 1), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_ino(&file, NULL), NANDU_ERR_ARGUMENT);
    EXPECT(nandu_file_close(&file), 0);
}

void test_files_misuse(ram_chip *ram) {
    opens(ram);
    no_handle(NULL, NANDU_ERR_ARGUMENT);
    nandu_fs *fs = format(ram, memory, sizeof memory);
    nulls(fs);

    /* A store is no file system, and the other way round. */
    nandu_store_info info;
    EXPECT(nandu_store_info_of((nandu_store *)(void *)fs, &info), NANDU_ERR_HANDLE);
    EXPECT(nandu_store_close((nandu_store *)(void *)fs), NANDU_ERR_HANDLE);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        other[i] = memory[i];
    no_handle((nandu_fs *)(void *)((uint8_t *)other + ((uint8_t *)(void *)fs - (uint8_t *)memory)), NANDU_ERR_HANDLE);

    /* What is open when its file system is closed. */
    nandu_file file;
    nandu_dir dir;
    EXPECT(nandu_file_open(&file, fs, "file", NANDU_OPEN_READ | NANDU_OPEN_WRITE), 0);
    EXPECT(nandu_dir_open(&dir, fs, ""), 0);
    EXPECT(nandu_fs_unmount(fs), 0);
    no_handle(fs, NANDU_ERR_HANDLE);
    no_file(&file, &dir, NANDU_ERR_HANDLE);
    EXPECT(nandu_dir_close(&dir), 0);
}
