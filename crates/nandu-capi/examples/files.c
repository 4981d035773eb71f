/* Files: a log that grows, and a file that is replaced as a whole. */
#include "example.h"

static uint8_t memory[NANDU_FS_MEMORY(2048, 64, 1024, 4096, 4096, 4)];

/* A line at the end of the log, durable when this returns. */
static int append(nandu_fs *fs, const char *line, size_t size) {
    nandu_file file;
    int error = nandu_file_open(&file, fs, "/log/today", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE | NANDU_OPEN_APPEND);
    if (error != 0)
        return error;
    const int32_t count = nandu_file_write(&file, line, size);
    error = count < 0 ? count : nandu_file_sync(&file);
    const int closed = nandu_file_close(&file);
    return error != 0 ? error : closed;
}

/* A file with this content takes the place of another: after a power cut the old one or the new one is there. */
static int replace(nandu_fs *fs, const char *path, const void *data, size_t size) {
    nandu_file file;
    int error = nandu_file_open(&file, fs, "/draft", NANDU_OPEN_WRITE | NANDU_OPEN_CREATE | NANDU_OPEN_TRUNCATE);
    if (error != 0)
        return error;
    const int32_t count = nandu_file_write(&file, data, size);
    const int closed = nandu_file_close(&file);
    if (count < 0 || closed != 0)
        return count < 0 ? count : closed;
    /* Durable when it returns, and all that was written before. */
    return nandu_fs_rename(fs, "/draft", path, NANDU_RENAME_REPLACE);
}

int example(const nandu_chip *chip) {
    const nandu_fs_options options = {.open_max = 4};
    nandu_fs *fs;
    nandu_stat stat;
    int error = nandu_fs_mount(&fs, chip, &options, memory, sizeof memory);
    if (error == NANDU_ERR_NOT_FORMATTED)
        error = nandu_fs_format(&fs, chip, &options, NULL, memory, sizeof memory);
    if (error != 0)
        return error;
    error = nandu_fs_mkdir(fs, "/log", 0755);
    if (error == NANDU_ERR_EXISTS)
        error = 0;
    if (error == 0)
        error = append(fs, "21.5 C\n", 7);
    if (error == 0)
        error = replace(fs, "/settings", "unit=kelvin\n", 12);
    if (error == 0)
        error = nandu_fs_stat(fs, "/log/today", &stat);
    if (error != 0)
        return error;
    say("bytes of log", (long)stat.size);

    nandu_dir dir;
    nandu_dirent entry;
    long names = 0;
    error = nandu_dir_open(&dir, fs, "/");
    if (error != 0)
        return error;
    while ((error = nandu_dir_read(&dir, &entry)) > 0)
        names++;
    if (error != 0)
        return error;
    say("names", names);
    return nandu_fs_unmount(fs);
}
