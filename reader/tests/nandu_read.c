/*
 * Reads a volume in an image file, with the reader for boot loaders:
 *
 *   nandu-read [--fails] [--at SNAPSHOT] IMAGE get KEY | cat PATH | ls [PATH] | export DIRECTORY | sums | all | hex | costs
 *
 * `all` prints the records of a store as `nandu kv export --format jsonl` does, `hex` as digits, key and value, and `export` copies a file system as
 * `nandu fs export` does; `sums` prints a line for each file: path, mode, size, time of change and CRC-32C. `costs` says how many pages a mount and a lookup of each record read. With `--fails` pages that a cut left
 * unstable cannot be read; else they read well.
 */
#define _POSIX_C_SOURCE 200809L
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct image image;
static nr_config config;
static nr_reader reader;

static int fail(const char *what, int error)
{
    static const char *const names[] = { "",
                                         "not found",
                                         "a page cannot be read",
                                         "a page is damaged",
                                         "no volume",
                                         "another geometry",
                                         "not supported",
                                         "not of this type",
                                         "too long" };
    fprintf(stderr, "nandu-read: %s: %s\n", what, error >= -8 && error < 0 ? names[-error] : strerror(errno));
    return 1;
}

/* Reads a whole value; returns null where that fails. */
static uint8_t *whole(const nr_value *value, int *error)
{
    uint8_t *bytes = malloc(value->size ? value->size : 1);
    uint32_t done = 0;
    while (bytes && done < value->size) {
        /* In odd pieces, so that ranges are tried as well. */
        uint32_t piece = value->size - done < 7001 ? value->size - done : 7001;
        int32_t got = nr_read(&reader, value, done, bytes + done, piece);
        if (got <= 0) {
            *error = got;
            free(bytes);
            return 0;
        }
        done += (uint32_t)got;
    }
    return bytes;
}

static int is_text(const uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size;) {
        unsigned more = b[i] < 0x80 ? 0 : b[i] >= 0xC2 && b[i] < 0xE0 ? 1 : b[i] >> 4 == 0xE ? 2 : b[i] >= 0xF0 && b[i] < 0xF5 ? 3 : 9;
        if (more == 9 || more > size - i - 1) return 0;
        for (unsigned j = 1; j <= more; j++)
            if (b[i + j] >> 6 != 2) return 0;
        if (b[i] == 0xE0 && b[i + 1] < 0xA0) return 0;
        if (b[i] == 0xED && b[i + 1] > 0x9F) return 0;
        if (b[i] == 0xF0 && b[i + 1] < 0x90) return 0;
        if (b[i] == 0xF4 && b[i + 1] > 0x8F) return 0;
        i += 1 + more;
    }
    return 1;
}

static void field(const char *name, const uint8_t *b, size_t size)
{
    if (!is_text(b, size)) {
        printf("\"%s_hex\":\"", name);
        for (size_t i = 0; i < size; i++) printf("%02x", b[i]);
        printf("\"");
        return;
    }
    printf("\"%s\":\"", name);
    for (size_t i = 0; i < size; i++) {
        const char *escape = b[i] ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", b[i]) : 0;
        if (b[i] == '"' || b[i] == '\\') printf("\\%c", b[i]);
        else if (escape && b[i] < 0x20) printf("\\%c", escape[1]);
        else if (b[i] < 0x20) printf("\\u%04x", b[i]);
        else putchar(b[i]);
    }
    printf("\"");
}

static int all(int in_hex)
{
    uint8_t key[NR_KEY_MAX];
    size_t key_size = reader.key_size;
    nr_value value;
    memset(key, 0, sizeof key);
    for (int beyond = 0;; beyond = 1) {
        int error = nr_next(&reader, key, &key_size, beyond, &value);
        if (error == NR_NOT_FOUND) return 0;
        if (error < 0) return fail("listing", error);
        uint8_t *bytes = whole(&value, &error);
        if (!bytes) return fail("value", error);
        if (in_hex) {
            for (size_t i = 0; i < key_size; i++) printf("%02x", key[i]);
            printf(" ");
            for (size_t i = 0; i < value.size; i++) printf("%02x", bytes[i]);
            printf("\n");
            free(bytes);
            continue;
        }
        printf("{");
        field("key", key, key_size);
        printf(",");
        field("value", bytes, value.size);
        printf("}\n");
        free(bytes);
    }
}

static int get(const char *key)
{
    nr_value value;
    int error = nr_find(&reader, key, strlen(key), &value);
    if (error < 0) return fail(key, error);
    uint8_t *bytes = whole(&value, &error);
    if (!bytes) return fail(key, error);
    fwrite(bytes, 1, value.size, stdout);
    free(bytes);
    return 0;
}

static int copy_out(const nr_file *file, FILE *out, const char *path)
{
    static uint8_t bytes[100003];
    for (uint64_t done = 0; done < file->size;) {
        int32_t got = nr_file_read(&reader, file, done, bytes, sizeof bytes);
        if (got <= 0) return fail(path, got);
        fwrite(bytes, 1, (size_t)got, out);
        done += (uint64_t)got;
    }
    return 0;
}

static int cat(const char *path)
{
    nr_file file;
    int error = nr_open(&reader, path, &file);
    return error < 0 ? fail(path, error) : copy_out(&file, stdout, path);
}

static int ls(const char *path)
{
    nr_file directory;
    nr_name name;
    int error = nr_open(&reader, path, &directory);
    memset(&name, 0, sizeof name);
    while (error >= 0 && (error = nr_list(&reader, &directory, &name)) >= 0) printf("%s\n", name.name);
    return error == NR_NOT_FOUND ? 0 : fail(path, error);
}

static int export(const char *path, const char *target)
{
    char from[8192], to[8192], link[8192];
    nr_file directory, file;
    nr_name name;
    int error = nr_open(&reader, path, &directory);
    if (error < 0) return fail(path, error);
    if (mkdir(target, 0755) && errno != EEXIST) return fail(target, 0);
    memset(&name, 0, sizeof name);
    while ((error = nr_list(&reader, &directory, &name)) >= 0) {
        snprintf(from, sizeof from, "%s/%s", path, name.name);
        snprintf(to, sizeof to, "%s/%s", target, name.name);
        if ((error = nr_open(&reader, from, &file)) < 0) return fail(from, error);
        if (file.inode != name.inode || file.mode >> 12 != name.type) return fail(from, NR_CORRUPT);
        if (name.type == 4) {
            if (export(from, to)) return 1;
        } else if (name.type == 8) {
            FILE *out = fopen(to, "wb");
            if (!out) return fail(to, 0);
            error = copy_out(&file, out, from);
            struct timespec times[2] = { { 0, UTIME_OMIT }, { (time_t)file.mtime_s, (long)file.mtime_ns } };
            fchmod(fileno(out), (mode_t)(file.mode & 07777));
            fflush(out);
            futimens(fileno(out), times);
            fclose(out);
            if (error) return error;
        } else if (name.type == 10) {
            int32_t size = nr_readlink(&reader, &file, link, sizeof link - 1);
            if (size < 0) return fail(from, size);
            link[size] = 0;
            if (symlink(link, to)) return fail(to, 0);
        }
    }
    return error == NR_NOT_FOUND ? 0 : fail(path, error);
}

static int sums(const char *path)
{
    static uint8_t bytes[1 << 20];
    char from[8192];
    nr_file directory, file;
    nr_name name;
    int error = nr_open(&reader, path, &directory);
    if (error < 0) return fail(path, error);
    memset(&name, 0, sizeof name);
    while ((error = nr_list(&reader, &directory, &name)) >= 0) {
        snprintf(from, sizeof from, "%s/%s", path, name.name);
        if ((error = nr_open(&reader, from, &file)) < 0) return fail(from, error);
        int32_t size = 0;
        if (name.type == 8) size = nr_file_read(&reader, &file, 0, bytes, sizeof bytes);
        if (name.type == 10) size = nr_readlink(&reader, &file, (char *)bytes, sizeof bytes);
        if (size < 0) return fail(from, size);
        printf("%s %o %llu %lld.%09u %08x\n", from, file.mode, (unsigned long long)file.size, (long long)file.mtime_s, file.mtime_ns,
               image_crc(bytes, (size_t)size));
        if (name.type == 4 && sums(from)) return 1;
    }
    return error == NR_NOT_FOUND ? 0 : fail(path, error);
}

static int costs(unsigned long mount)
{
    uint8_t key[NR_KEY_MAX];
    size_t key_size = reader.key_size;
    unsigned long records = 0, sum = 0, worst = 0;
    nr_value value;
    memset(key, 0, sizeof key);
    for (int beyond = 0; nr_next(&reader, key, &key_size, beyond, &value) >= 0; beyond = 1) {
        unsigned long before = image.reads;
        reader.loaded = 0xFFFFFFFF;
        nr_find(&reader, key, key_size, &value);
        records++;
        sum += image.reads - before;
        if (image.reads - before > worst) worst = image.reads - before;
    }
    printf("mount %lu reads, height %u, %u commits with changes, %u tagged pages; %lu lookups of %.2f reads, at most %lu\n", mount,
           reader.height, reader.member_count, reader.tail_count, records, records ? (double)sum / (double)records : 0.0, worst);
    return 0;
}

int main(int argc, char **argv)
{
    long snapshot = -1;
    int at = 1, fails = 0;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (!strcmp(argv[at], "--fails")) fails = 1;
        else if (!strcmp(argv[at], "--at") && at + 1 < argc) snapshot = atol(argv[++at]);
    }
    if (argc - at < 2) {
        fprintf(stderr, "usage: nandu-read [--fails] [--at SNAPSHOT] IMAGE get KEY | cat PATH | ls [PATH] | export DIRECTORY | sums | all | hex | costs\n");
        return 2;
    }
    const char *verb = argv[at + 1], *argument = argc - at > 2 ? argv[at + 2] : "/";
    if (image_open(&image, argv[at])) return 1;
    image.unstable = fails ? UNSTABLE_FAILS : UNSTABLE_READS;
    image_config(&image, &config);
    uint8_t *buffer = malloc(image.page_size);
    int error = nr_mount(&reader, &config, buffer);
    if (error >= 0 && snapshot >= 0) error = nr_snapshot(&reader, (uint32_t)snapshot);
    if (error < 0) error = fail(argv[at], error);
    else if (!strcmp(verb, "get")) error = get(argument);
    else if (!strcmp(verb, "cat")) error = cat(argument);
    else if (!strcmp(verb, "ls")) error = ls(argument);
    else if (!strcmp(verb, "export")) error = export("", argument);
    else if (!strcmp(verb, "sums")) error = sums("");
    else if (!strcmp(verb, "all")) error = all(0);
    else if (!strcmp(verb, "hex")) error = all(1);
    else if (!strcmp(verb, "costs")) error = costs(image.reads);
    else error = 2;
    free(buffer);
    image_close(&image);
    return error;
}
