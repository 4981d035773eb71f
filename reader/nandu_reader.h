/*
 * nandu_reader: reads a nandu volume on raw NAND flash and never writes.
 *
 * For boot loaders. C99, no heap, no library, no global state. It finds a record by its key and a file by its path,
 * and reads them, also after a power cut, whose traces it leaves as they are. It is written from FORMAT.md.
 * Every page that it uses is checked: checksum, own address, volume, kind. No content of the flash makes it crash, loop or
 * read outside of the page buffer.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NANDU_READER_H
#define NANDU_READER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns: 0 or a count, or one of these. */
enum {
    NR_OK = 0,
    NR_NOT_FOUND = -1,   /* no such record, file or snapshot; the end of a listing */
    NR_READ = -2,        /* a page that is needed cannot be read */
    NR_CORRUPT = -3,     /* a page that is needed does not hold what it should */
    NR_NO_VOLUME = -4,   /* no anchor was found */
    NR_GEOMETRY = -5,    /* the volume is of a chip with another geometry, or the configuration makes no sense */
    NR_UNSUPPORTED = -6, /* the volume is of format 1, or has a feature that this reader does not know */
    NR_TYPE = -7,        /* a directory where a file is needed, or the other way round; no file system */
    NR_LIMIT = -8        /* a key, a name or a buffer is too long or too short */
};

/* Pages of a block that are used with one bit a cell. */
enum {
    NR_PAIRING_NONE = 0,     /* every page: the chip has one bit a cell */
    NR_PAIRING_SCHEME_A = 1, /* 0, 1, 2, 3, 6, 7, 10, 11 and so on */
    NR_PAIRING_DISTANCE_3 = 2, /* 0, 1, 3, 5, 7 and so on */
    NR_PAIRING_TABLE = 3     /* as lsb_pages says */
};

enum {
    NR_KEY_MAX = 255,
    NR_NAME_MAX = 255,
    NR_MEMBERS_MAX = 13, /* commits whose changes are needed */
    NR_TAIL_MAX = 9,     /* tagged pages behind the newest commit */
    NR_SLOTS = 15,       /* snapshots, and those that were released and are being removed */
    NR_FILTER = 128      /* bytes of the filter of a commit's changes */
};

/* The chip. It has to stay where it is as long as the reader is used. */
typedef struct nr_config {
    void *context;
    /*
     * Reads page `page` of block `block`, counted from 0: `page_size` bytes into `main_area`, after error correction. Where
     * `tag` is not null, it also gets the first 16 of the protected bytes of the spare area. Returns 0, or anything else if
     * the page cannot be read or corrected.
     */
    int (*read)(void *context, uint32_t block, uint32_t page, void *main_area, void *tag);
    uint32_t page_size;        /* bytes of the main area: 256 to 32768 */
    uint32_t pages_per_block;  /* of the chip, LSB and MSB pages together */
    uint32_t block_count;
    uint32_t pairing;          /* NR_PAIRING_... */
    const uint16_t *lsb_pages; /* with NR_PAIRING_TABLE: pages_per_block / 2 pages, ascending */
} nr_config;

/* Where a value is. It holds until the reader mounts again. */
typedef struct nr_value {
    uint32_t size;   /* bytes */
    uint32_t page;
    uint32_t check;  /* checksum of the page, of the value, or of the key */
    uint16_t offset;
    uint8_t kind;
    uint8_t key_size;
} nr_value;

typedef struct nr_tail {
    uint64_t inode;
    uint32_t time_low, time_high;
    uint32_t index;
    uint32_t page;
    uint32_t check;
    uint32_t end;
} nr_tail;

/* What a mount remembers. Its fields are the reader's own. */
typedef struct nr_reader {
    const nr_config *config;
    uint8_t *buffer;
    uint8_t kind;
    uint8_t cells;
    uint8_t key_size;
    uint8_t page_bits;
    uint8_t page_shift;
    uint8_t height;
    uint8_t member_count;
    uint8_t slot_count;
    uint8_t tail_count;
    uint8_t is_raw;
    uint8_t is_files;
    uint8_t is_old;
    uint8_t any_volume;
    uint32_t loaded;
    uint32_t body;
    uint32_t page_count;
    uint32_t value_size;
    int bound_size;
    uint32_t root;
    uint32_t commit;
    uint32_t volume;
    uint32_t change_count;
    uint64_t limit;
    uint64_t sequence;
    uint8_t slots[NR_SLOTS];
    uint8_t hash_key[16];
    uint32_t members[NR_MEMBERS_MAX];
    nr_tail tail[NR_TAIL_MAX];
    uint8_t bound[NR_KEY_MAX + 1];
    uint8_t key[NR_KEY_MAX + 1];
    uint8_t near[NR_KEY_MAX + 1];
    uint8_t kept[NR_KEY_MAX + 1];
    uint8_t best[NR_KEY_MAX + 1];
    uint8_t filters[NR_MEMBERS_MAX][NR_FILTER];
} nr_reader;

/*
 * Finds the newest state of the volume. `buffer` has config->page_size bytes and belongs to the reader from now on. Reads the
 * first page of some blocks, some pages of the newest anchor block and of the block with the newest commit, and each commit whose
 * changes wait. NR_UNSUPPORTED for a volume of format 1.
 */
int nr_mount(nr_reader *reader, const nr_config *config, void *buffer);

/*
 * Shows records and files as snapshot `number` keeps them, until the next mount. NR_NOT_FOUND if there is none, or if it was
 * released; then nothing changes.
 */
int nr_snapshot(nr_reader *reader, uint32_t number);

/*
 * Finds a record. Integer keys are given with their high byte first. Reads a page for each level of the tree whose node is in
 * another page than the one above, and those commits that may list a change of the key.
 */
int nr_find(nr_reader *reader, const void *key, size_t key_size, nr_value *value);

/*
 * Finds the record with the lowest key that is not below `key`, or, if `beyond`, that is above it, and writes that key to `key`,
 * which has room for NR_KEY_MAX bytes, and its size to `key_size`. Reads all commits whose changes wait.
 */
int nr_next(nr_reader *reader, void *key, size_t *key_size, int beyond, nr_value *value);

/* Copies up to `size` bytes of a value, from `offset` on. Returns how many, fewer only at its end. */
int32_t nr_read(nr_reader *reader, const nr_value *value, uint32_t offset, void *out, uint32_t size);

/* A file, a directory or a symbolic link. */
typedef struct nr_file {
    uint64_t inode;
    uint64_t size;          /* bytes; names in a directory */
    int64_t ctime_s, mtime_s;
    uint32_t ctime_ns, mtime_ns;
    uint32_t mode, uid, gid, nlink; /* as POSIX has them */
} nr_file;

/* A name in a directory. */
typedef struct nr_name {
    uint8_t place[6];       /* where the listing stands; all zeros at its begin */
    uint8_t type;           /* upper four bits of a mode: 4 directory, 8 file, 10 symbolic link, ... */
    uint8_t is_begun;
    uint64_t inode;
    char name[NR_NAME_MAX + 1];
} nr_name;

/* Finds a file by its path, whose names are parted by slashes; symbolic links are not followed. */
int nr_open(nr_reader *reader, const char *path, nr_file *file);

/* Finds a file by its number. */
int nr_open_inode(nr_reader *reader, uint64_t inode, nr_file *file);

/* Copies up to `size` bytes of a file from `offset` on. Returns how many, fewer only at its end. */
int32_t nr_file_read(nr_reader *reader, const nr_file *file, uint64_t offset, void *out, uint32_t size);

/* Copies the target of a symbolic link, without a zero at its end. Returns its size, or NR_LIMIT if `size` is less. */
int32_t nr_readlink(nr_reader *reader, const nr_file *file, char *out, uint32_t size);

/* The next name of a directory, in the order of their hashes. Begins with a `name` of zeros; NR_NOT_FOUND at the end. */
int nr_list(nr_reader *reader, const nr_file *directory, nr_name *name);

#ifdef __cplusplus
}
#endif

#endif
