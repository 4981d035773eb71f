/*
 * nandu: ordered records and files straight on raw NAND flash.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A program describes its chip with a nandu_chip: shape and callbacks. It hands over memory, of which nandu_store_memory or
 * nandu_fs_memory say how much, and gets a handle that lies in this memory. Nothing else is used: no heap, no global variable. Any number
 * of volumes may be open at once.
 *
 * Answers. A function that returns int or int32_t returns 0 or a count, or a negative error number, NANDU_ERR_... . After an error the
 * volume holds what it held before the call, but where a call says otherwise. nandu_error_name and nandu_error_text say an error in words.
 *
 * Pointers. A null pointer is answered with NANDU_ERR_ARGUMENT, but where a call says that it may be null; with a size of 0 any pointer will
 * do. Buffers of one call do not overlap. A handle that was closed, copied elsewhere, or is of another kind is answered with
 * NANDU_ERR_HANDLE, as long as its memory can still be read.
 *
 * Tasks. Calls on one volume come one after the other: the program sees to it, or gives the chip a lock, and then any task may call. No callback
 * calls its own volume: such a call is answered with NANDU_ERR_BUSY. Two volumes may be used in two tasks, as far as their callbacks allow.
 *
 * Bugs. Where nandu finds a bug of its own, it stops and does not return: built without the standard library, as for firmware, it calls
 * nandu_panic, which the program supplies; built with it, as on a host, it prints what was wrong and aborts.
 *
 * Costs are stated in reads, programs and erases of the chip. A change pays its share of garbage collection besides.
 */
#ifndef NANDU_H
#define NANDU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors ------------------------------------------------------------------------------------------------------------------- */

/* No error. */
#define NANDU_OK 0

/* What callbacks of a chip return, and what calls hand on where a failure of the chip could not be worked around. A callback may return
 * numbers of its own from NANDU_ERR_DRIVER down: they mean what NANDU_ERR_BUS means, and are handed on as they are. */
#define NANDU_ERR_UNCORRECTABLE (-1)  /* a read found more flipped bits than can be corrected */
#define NANDU_ERR_PROGRAM_FAILED (-2) /* the chip says that a program failed; its block is retired */
#define NANDU_ERR_ERASE_FAILED (-3)   /* the chip says that an erase failed; its block is retired */
#define NANDU_ERR_OUT_OF_BOUNDS (-4)  /* an address outside of the chip */
#define NANDU_ERR_NOT_ALIGNED (-5)    /* a column or size that does not fit the program unit */
#define NANDU_ERR_UNSUPPORTED (-6)    /* the chip or the driver does not offer this */
#define NANDU_ERR_BUS (-7)            /* outcome unknown: a transfer failed or a time limit passed; open again when it is over */
#define NANDU_ERR_GONE (-8)           /* the chip does not answer and never will */
#define NANDU_ERR_OTHER (-9)          /* anything else that a chip can say */
#define NANDU_ERR_DRIVER (-1000)      /* this and lower numbers are the driver's own */

/* What is wrong with a call. */
#define NANDU_ERR_ARGUMENT (-16) /* a null pointer, or a value that no argument of this kind has */
#define NANDU_ERR_HANDLE (-17)   /* no open handle of this kind */
#define NANDU_ERR_BUSY (-18)     /* another call on this volume has not returned */
#define NANDU_ERR_BUFFER (-19)   /* the buffer is too small for what was asked for */
#define NANDU_ERR_MEMORY (-20)   /* the memory handed over is too small */
#define NANDU_ERR_ACCESS (-21)   /* the file was not opened for this */

/* What is wrong with a chip or a volume. */
#define NANDU_ERR_GEOMETRY (-22)       /* the chip describes itself as no chip can be */
#define NANDU_ERR_UNSUITABLE (-23)     /* the options cannot be had on this chip */
#define NANDU_ERR_NOT_FORMATTED (-24)  /* no volume was found on the chip */
#define NANDU_ERR_OTHER_FORMAT (-25)   /* the volume was made for another chip, with other options, or holds something else */
#define NANDU_ERR_NOT_COMPILED (-26)   /* this needs a part of nandu that the library was built without */
#define NANDU_ERR_PENDING_SIZE (-27)   /* changes were left waiting and do not fit pending_size */
#define NANDU_ERR_READ_ONLY (-28)      /* the volume can only be read: opened so, or the chip is at the end of its life */
#define NANDU_ERR_FULL (-29)           /* there is no room; deleting works on */
#define NANDU_ERR_CORRUPT (-30)        /* a page that is needed cannot be read, or what is on the chip contradicts itself */
#define NANDU_ERR_POISONED (-31)       /* an earlier write failed: open again; what was durable is there */

/* Records and names. */
#define NANDU_ERR_NOT_FOUND (-32)     /* there is no such key, name or attribute */
#define NANDU_ERR_KEY_SIZE (-33)      /* the key is too long */
#define NANDU_ERR_VALUE_SIZE (-34)    /* the value is too large, or too large for a batch */
#define NANDU_ERR_BATCH_SIZE (-35)    /* the batch concerns too many leaves or large values */
#define NANDU_ERR_NOT_ASCENDING (-36) /* the keys of a batch do not strictly ascend */
#define NANDU_ERR_SNAPSHOTS (-37)     /* there are as many snapshots as there can be */
#define NANDU_ERR_NO_SNAPSHOT (-38)   /* there is no such snapshot; it was released */
#define NANDU_ERR_TOO_HIGH (-39)      /* too many keys of such a length for pages of this size */

/* Files. */
#define NANDU_ERR_EXISTS (-48)         /* the name or attribute is there already */
#define NANDU_ERR_NO_INODE (-49)       /* there is no inode of this number any more */
#define NANDU_ERR_NOT_DIRECTORY (-50)  /* this is no directory */
#define NANDU_ERR_IS_DIRECTORY (-51)   /* this is a directory */
#define NANDU_ERR_NOT_EMPTY (-52)      /* the directory has names in it */
#define NANDU_ERR_NOT_FILE (-53)       /* this is no file with content */
#define NANDU_ERR_LOOP (-54)           /* a directory cannot be moved below itself */
#define NANDU_ERR_NAME (-55)           /* this cannot be a name */
#define NANDU_ERR_NAME_SIZE (-56)      /* the name is too long */
#define NANDU_ERR_TOO_MANY_LINKS (-57) /* the directory has as many directories in it as can be counted */
#define NANDU_ERR_TOO_MANY_OPEN (-58)  /* as many files are open as open_max says */
#define NANDU_ERR_FILE_SIZE (-59)      /* the file would become too large */
#define NANDU_ERR_RANGE (-60)          /* an offset or a length that makes no sense */
#define NANDU_ERR_XATTR_SIZE (-61)     /* the value of the attribute has more than 65,536 bytes */
#define NANDU_ERR_NO_FILE_SYSTEM (-62) /* the volume on the chip holds no file system, or one of another version */

/* The name of an error, such as "NANDU_ERR_FULL", "NANDU_OK" of 0, and "NANDU_ERR_?" of a number that is none. Never null. Costs nothing. */
const char *nandu_error_name(int error);

/* What an error means, in words. Never null. Costs nothing. */
const char *nandu_error_text(int error);

/* The version of the library, such as "0.1.0". */
const char *nandu_version(void);

/* Supplied by the program where the library was built without the standard library: nandu found a bug of its own. Must not return. What was
 * acknowledged before is on the chip. */
void nandu_panic(void);

/* ---- The chip ----------------------------------------------------------------------------------------------------------------- */

/* Which pages of a block share their cells. */
#define NANDU_PAIRING_NONE 0     /* one bit a cell */
#define NANDU_PAIRING_SCHEME_A 1 /* pages 0-4, 1-5, 2-8, 3-9, 6-12 and so on */
#define NANDU_PAIRING_DIST3 2    /* pages 0-2, 1-4, 3-6, 5-8 and so on */

/* In which order pages of a block may be programmed. */
#define NANDU_ORDER_ASCENDING 0
#define NANDU_ORDER_ANY 1

/* What a power cut during a program may damage. */
#define NANDU_TEAR_SCOPE_PAGE 0  /* anything in the page being programmed */
#define NANDU_TEAR_SCOPE_RANGE 1 /* the bytes being programmed and nothing else */
#define NANDU_TEAR_SCOPE_PAIR 2  /* the page and its partner in the same cells */

/* How the cells of a block are used. */
#define NANDU_MODE_SLC 0 /* one bit a cell */
#define NANDU_MODE_MLC 1 /* two bits a cell */

/* The shape of a chip, from its data sheet. Where it says "0 stands for", a zeroed struct is enough. */
typedef struct nandu_geometry {
    uint32_t page_size;       /* bytes in the main area of a page: a power of two from 256 to 65,536 */
    uint32_t spare_size;      /* bytes in its spare area */
    uint32_t tag_size;        /* bytes of the spare area that error correction protects and program_tagged programs; 0: none */
    uint32_t pages_per_block; /* LSB and MSB pages together */
    uint32_t block_count;     /* bad ones included */
    uint32_t program_unit;    /* column and size of a partial program are multiples of it; 0 stands for page_size */
    uint32_t codeword_size;   /* main-area bytes in a codeword; 0 stands for 512, or page_size if that is less */
    uint32_t endurance;       /* erases that a block is rated for; 0 stands for 60,000 */
    uint32_t bad_block_max;   /* blocks that may be bad over the rated life; 0 stands for a fiftieth of all */
    uint16_t correctable_bits; /* flipped bits that can be corrected in a codeword; 0 stands for 1 */
    uint8_t programs_per_page; /* programs that a page takes between two erases; 0 stands for 1: whole pages only */
    uint8_t plane_count;       /* 0 stands for 1 */
    uint8_t die_count;         /* 0 stands for 1 */
    uint8_t pairing;           /* NANDU_PAIRING_... */
    uint8_t order;             /* NANDU_ORDER_... */
    uint8_t tear_scope;        /* NANDU_TEAR_SCOPE_... */
} nandu_geometry;

/*
 * A chip: its shape, and how it is driven. It is copied when a volume is opened, and need not stay; what context points to has to.
 *
 * Pages are numbered through the chip: block times pages_per_block, plus the place in the block. A callback waits for the chip, or only
 * starts the work where there is a wait callback. It returns 0 or as stated, or a NANDU_ERR_... of a chip. PROGRAM_FAILED and
 * ERASE_FAILED are for what the chip itself says: they take a block out of service for good. A time limit that passed is BUS.
 */
typedef struct nandu_chip {
    nandu_geometry geometry;
    /* Handed to each callback. */
    void *context;
    /* Reads size bytes of a page from a column on; columns from page_size on are the spare area, where the tag begins at page_size + 4
     * (wherever the part has it: the driver translates). Returns the corrected bits of the worst codeword, 0 if there were none. A driver
     * that does not report corrected bits loses pages that decay. */
    int (*read)(void *context, uint32_t page, uint32_t column, void *data, uint32_t size);
    /* Programs size bytes of a page from a column on. */
    int (*program)(void *context, uint32_t page, uint32_t column, const void *data, uint32_t size);
    /* Programs a whole page and its tag with one program. Null where tag_size is 0. */
    int (*program_tagged)(void *context, uint32_t page, const void *data, const void *tag, uint32_t tag_size);
    /* Erases a block; mode is NANDU_MODE_SLC on every chip with one bit a cell. */
    int (*erase)(void *context, uint32_t block, int mode);
    /* Whether a block carries a bad-block mark: 1 or 0. */
    int (*is_bad)(void *context, uint32_t block);
    /* Marks a block as bad, for good. */
    int (*mark_bad)(void *context, uint32_t block);
    /* Called after each program, erase and mark_bad that returned 0: waits until the chip is ready, as by giving way to another task, and
     * returns what became of the operation. Null where the callbacks wait themselves. */
    int (*wait)(void *context);
    /*
     * For a volume that several tasks use: lock is called at the beginning of every call on the volume that touches it or the chip, format and open
     * included, and unlock at its end. lock waits until no other task holds the lock and returns 0; another answer, as for a time limit, is handed on
     * by the call, which has then done nothing. A mutex that can be taken twice by one task will do and is not needed; one with priority inheritance
     * is best. Volumes and drivers that share a bus may share a lock. Both null, or neither.
     *
     * What is lent is not protected once the call has returned: nandu_entry of a cursor is good until the next call of any task, so a
     * task that walks holds a mutex of its own, or copies values with nandu_store_get. A volume is closed by the last task that uses it.
     *
     *     static int take(void *context) { return xSemaphoreTake(((board *)context)->mutex, pdMS_TO_TICKS(5000)) ? NANDU_OK : NANDU_ERR_BUSY; }
     *     static void give(void *context) { xSemaphoreGive(((board *)context)->mutex); }
     */
    int (*lock)(void *context);
    void (*unlock)(void *context);
} nandu_chip;

/* ---- Stores: ordered records -------------------------------------------------------------------------------------------------- */

typedef struct nandu_store nandu_store;

/* When a change is durable. */
#define NANDU_DURABLE_AT_ONCE 0 /* when the call returns */
#define NANDU_DURABLE_ON_SYNC 1 /* at the next nandu_store_sync; many changes then cost few programs. Takes pending_size. */

/* For reads_max: pages are not moved because they were read often. */
#define NANDU_NEVER UINT32_MAX

/* Choices made when a store is formatted or opened. Zeroed, it has the defaults. What a volume was formatted with is found on the chip. */
typedef struct nandu_store_options {
    uint64_t salt;          /* at format: chance, or the serial number of the chip, from which the volume's id is drawn */
    uint32_t volume;        /* the volume's id; 0: left open */
    uint32_t cache_size;    /* bytes for nodes of the tree; 0 stands for 8,192, and 1 is as good as none */
    uint32_t pending_size;  /* bytes for changes that wait, at most 65,535 are used and at least 600; 0: none waits */
    uint32_t reads_max;     /* reads of a block after which its pages are moved; 0: left open; NANDU_NEVER */
    uint8_t durability;     /* NANDU_DURABLE_... */
    uint8_t read_back;      /* 1: read the header of each page back after its program */
    uint8_t aligned;        /* 1: page buffers at multiples of 32, for DMA beside a data cache; else of 8 */
    uint8_t stream_count;   /* 2 to 8; 0: left open */
    uint8_t ready_max;      /* 3 to 14; 0: left open */
    uint8_t commit_twice;   /* 1: program each commit twice, so that what is acknowledged outlives the newest page; one program more for each */
    uint8_t reserved[2];    /* zero */
} nandu_store_options;

/* Bytes of memory that format and open take, of any alignment, the handle included; 0 if chip or options cannot be. options may be null. */
size_t nandu_store_memory(const nandu_chip *chip, const nandu_store_options *options);

/* Makes an empty store on a chip and opens it; what was on it is lost, but for bad-block marks and the erase counts of a volume.
 * *store becomes a handle in the memory, or null after an error. options may be null. Reads about a page of each
 * block, 1,049 on a new chip of 1,024, asks each for its mark, and erases what was written. Errors: MEMORY, GEOMETRY, UNSUITABLE before anything
 * happened; those of the chip. */
int nandu_store_format(nandu_store **store, const nandu_chip *chip, const nandu_store_options *options, void *memory, size_t memory_size);

/* Opens the store on a chip, as format does. Costs about 20 reads after a close; after a power cut 40 reads at most, whatever the power did, and a few
 * programs; with read_back a read or two more for each block that it erases. Errors: NOT_FORMATTED, OTHER_FORMAT, NOT_COMPILED, MEMORY,
 * PENDING_SIZE; those of the chip. */
int nandu_store_open(nandu_store **store, const nandu_chip *chip, const nandu_store_options *options, void *memory, size_t memory_size);

/* Makes everything durable and leaves the store so that the next open has nothing to recover. Costs what sync does and at most one
 * checkpoint: a few programs. The handle is closed also after an error; what was durable is there all the same. */
int nandu_store_close(nandu_store *store);

/* Closes the handle and leaves the chip as it is, as if the power had gone. Costs nothing; the next open recovers. */
int nandu_store_abandon(nandu_store *store);

/* Puts a value at a key, or replaces it. Durable when it returns, or at the next sync with NANDU_DURABLE_ON_SYNC. Programs one page, two or three
 * when a leaf overflows, and its share of collection, once blocks are few. A
 * value for which key and value are larger than entry_size_max goes to pages of its own: a program for each; one of several pages is durable when it returns.
 * Errors: KEY_SIZE, VALUE_SIZE, NOT_COMPILED of such a value, FULL, READ_ONLY; those of the chip. */
int nandu_store_put(nandu_store *store, const void *key, size_t key_size, const void *value, size_t value_size);

/* Copies the whole value of a key and returns its size. Reads one page for each level of the tree that is not in memory: one, where the cache
 * holds the inner nodes. Errors: NOT_FOUND; BUFFER if the value is larger, and then nothing is copied; KEY_SIZE, CORRUPT. */
int32_t nandu_store_get(nandu_store *store, const void *key, size_t key_size, void *buffer, size_t buffer_size);

/* Copies what a value has from an offset on and returns how many bytes that were: fewer than asked for at its end, 0 behind it. Reads what get
 * does, and one page for each page of a large value that the part touches. Errors: NOT_FOUND, KEY_SIZE, CORRUPT. */
int32_t nandu_store_read(nandu_store *store, const void *key, size_t key_size, size_t offset, void *buffer, size_t buffer_size);

/* The size of a value. Reads what get does. Errors: NOT_FOUND, KEY_SIZE, CORRUPT. */
int32_t nandu_store_value_size(nandu_store *store, const void *key, size_t key_size);

/* Deletes a key. Durable as a put is. Programs one page, none if there is no such key, and its share of
 * collection. Works on a full chip too. Errors: NOT_FOUND, KEY_SIZE, READ_ONLY; those of the chip. */
int nandu_store_delete(nandu_store *store, const void *key, size_t key_size);

/* Deletes the lowest keys from one on to right below another, 16 at most and 256 bytes of keys together: called until it returns 0, it deletes the
 * range, as a log's oldest hour. from null with a size of 0: from the first key; to null: to the last. *deleted, which may be null, becomes how
 * many went. Returns 1 if the range has more, else 0. Each call happens wholly or not at all and is durable as a delete is; after a power cut
 * the same call goes on. Programs about one page for each leaf concerned, two as a rule, and its share of collection, as delete does. Works on a
 * full chip too, where it may be one key with each call. Errors: as delete, without NOT_FOUND. */
int nandu_store_delete_range(nandu_store *store, const void *from, size_t from_size, const void *to, size_t to_size, uint32_t *deleted);

/* A change of a batch: value null deletes the key. An empty value has a size of 0 and any pointer but null. */
typedef struct nandu_edit {
    const void *key;
    size_t key_size;
    const void *value;
    size_t value_size;
} nandu_edit;

/* Makes all these changes or none of them, whenever the power goes. Keys strictly ascend as bytes, values are small ones. Durable as a put is.
 * Programs about one page for each leaf concerned, and its share of collection, as put does. The array is used during the call and is the same
 * afterwards. Errors: as put; NOT_ASCENDING, BATCH_SIZE; VALUE_SIZE for a value that does not fit a leaf. */
int nandu_store_batch(nandu_store *store, nandu_edit *edits, size_t edit_count);

/* Makes every change so far durable, in order. Programs one page as a rule, none if nothing waits; in a store that grows, with much memory for
 * changes, 35 were counted. A sync that places changes pays their share of collection besides, as put does. Errors: those of the chip; then the
 * changes are still there, to be synced again. */
int nandu_store_sync(nandu_store *store);

/* Brings every change to its place, so that the volume can be opened without pending_size. Programs about a page for each leaf that has changes,
 * and its share of collection, as put does. Errors: those of the chip. */
int nandu_store_merge(nandu_store *store);

/* Uses idle time: collects garbage ahead of need, looking at up to so many pages. Returns 1 if there was anything to do, else 0. Syncs first. */
int nandu_store_idle(nandu_store *store, uint32_t pages);

/* What a store holds and takes. */
typedef struct nandu_store_info {
    uint64_t record_count;
    size_t key_size_max;   /* bytes in the longest key */
    size_t entry_size_max; /* bytes that a key and its value may have together to stand in a leaf, and in a batch */
    size_t value_size_max; /* bytes that the value of an empty key may have; a longer key leaves as much less */
    size_t pending_count;  /* changes that are not in their place yet, synced or not */
    uint32_t height;       /* levels of the tree */
} nandu_store_info;

/* Tells what a store holds. Costs nothing. */
int nandu_store_info_of(nandu_store *store, nandu_store_info *info);

/* What was done since a volume was opened, and how full and how worn the chip is. */
typedef struct nandu_stats {
    uint64_t programs;         /* pages programmed */
    uint64_t erases;           /* blocks erased */
    uint64_t checkpoints;
    uint64_t failures;         /* programs that failed and were repeated elsewhere, and erases that failed */
    uint32_t live_pages;       /* pages that are live, at most */
    uint32_t capacity_pages;   /* pages that may be live */
    uint32_t free_blocks;      /* blocks that hold nothing */
    uint32_t bad_blocks;       /* blocks out of use */
    uint32_t erase_count_min;  /* of the least worn data block */
    uint32_t erase_count_max;  /* of the most worn one */
    uint32_t was_cut;          /* 1 if the open found that the volume had not been closed, and recovered it */
    uint32_t reserved;
} nandu_stats;

/* Tells what was done. Costs nothing. */
int nandu_store_stats(nandu_store *store, nandu_stats *stats);

/* Told of an invariant that does not hold; the text is good during the call. */
typedef void (*nandu_report)(void *context, const char *text);

/* Walks the whole volume, reads only, tells report (which may be null) of each invariant that does not hold, and returns how many. Reads
 * every page that may be programmed. Errors: those of the chip. */
int32_t nandu_store_verify(nandu_store *store, nandu_report report, void *context);

/* Makes *digest 64 bits over every key and value: alike for the same entries, however they came about and on whatever chip, and different for
 * others, but for one in 2^64. Kept on another chip or a server it tells later whether anything was lost, or the whole chip put back to an older
 * state, which verify cannot know. It notices accidents and not attackers. It is over what is read now, with changes that wait: sync before for one
 * that a power cut does not change. Reads each leaf, and of large values each page, in pieces of 1 KiB on the stack; programs nothing. Errors:
 * CORRUPT; those of the chip. There is no digest of a part: *digest stays as it was then. */
int nandu_store_digest(nandu_store *store, uint64_t *digest);

/* ---- Snapshots ---------------------------------------------------------------------------------------------------------------- */

/* Keeps the store as it is now until it is released, over closes and power cuts; *snapshot becomes its number, which is not 0. At most eight at a
 * time. Durable when it returns. Programs one page, or two where something waits, and copies nothing; what changes replace afterwards is kept,
 * and takes room. Errors: SNAPSHOTS, FULL. */
int nandu_store_snapshot(nandu_store *store, uint32_t *snapshot);

/* Ends a snapshot. Programs one page, or two where something waits; what only it kept is removed with the calls that follow and in idle time.
 * Errors: NO_SNAPSHOT. */
int nandu_store_release(nandu_store *store, uint32_t snapshot);

/* Copies the numbers of the snapshots there are, the oldest first, as far as there is room for; returns how many there are. Costs nothing. */
int nandu_store_snapshots(nandu_store *store, uint32_t *snapshots, size_t capacity);

/* As nandu_store_get, of what a snapshot kept. Errors: NO_SNAPSHOT too. */
int32_t nandu_store_get_at(nandu_store *store, uint32_t snapshot, const void *key, size_t key_size, void *buffer, size_t buffer_size);

/* As nandu_store_read, of what a snapshot kept. Errors: NO_SNAPSHOT too. */
int32_t nandu_store_read_at(nandu_store *store, uint32_t snapshot, const void *key, size_t key_size, size_t offset, void *buffer, size_t buffer_size);

/* As nandu_store_digest, of what a snapshot kept: what the store's was when it was taken. Errors: NO_SNAPSHOT too. */
int nandu_store_digest_at(nandu_store *store, uint32_t snapshot, uint64_t *digest);

/* ---- Cursors ------------------------------------------------------------------------------------------------------------------ */

/* A position between two keys. It borrows nothing: the store may be changed between two steps, and any number may be open. */
typedef struct nandu_cursor {
    void *store;
    uint32_t opaque[70];
} nandu_cursor;

/* A record. Key and value are lent: they are good until the next call on the store. */
typedef struct nandu_entry {
    const void *key;
    size_t key_size;
    const void *value; /* null for a large value, of which nandu_store_read copies any part */
    size_t value_size;
} nandu_entry;

/* Where a cursor goes. */
#define NANDU_SEEK_FIRST 0 /* below every key */
#define NANDU_SEEK_LAST 1  /* above every key */
#define NANDU_SEEK_BELOW 2 /* right below a key, whether it is there or not: if it is, next meets it */
#define NANDU_SEEK_ABOVE 3 /* right above a key: if it is there, previous meets it */

/* Opens a cursor below every key. Costs nothing. */
int nandu_cursor_open(nandu_cursor *cursor, nandu_store *store);

/* The same over what a snapshot kept; that there is no such snapshot is said by next and previous. */
int nandu_cursor_open_at(nandu_cursor *cursor, nandu_store *store, uint32_t snapshot);

/* Goes elsewhere. The key is not looked at with FIRST and LAST, and may be null then. Costs nothing. */
int nandu_cursor_seek(nandu_cursor *cursor, int where, const void *key, size_t key_size);

/* The record right above the cursor, which moves over it. Returns 1, or 0 where there is none, and then the cursor stays. Reads the leaf,
 * unless the last call read it. Errors: KEY_SIZE of a cursor that was placed at a key that the store cannot have; NO_SNAPSHOT, CORRUPT. */
int nandu_cursor_next(nandu_cursor *cursor, nandu_entry *entry);

/* The same downwards. */
int nandu_cursor_previous(nandu_cursor *cursor, nandu_entry *entry);

/* Closes a cursor. It holds nothing; a cursor whose store was closed may be left as it is. */
int nandu_cursor_close(nandu_cursor *cursor);

/* ---- File systems ------------------------------------------------------------------------------------------------------------- */

/*
 * Paths are from the root: "a/b" and "/a//b/" are the same, and "" is the root. Symbolic links are not followed. A call whose name ends in _at takes
 * the number of an inode; NANDU_ROOT is that of the root.
 *
 * nandu_fs_sync and nandu_file_sync make everything durable that was changed before, of whatever file. Renaming and making a
 * directory are durable when they return, and all before them. What else was changed may become durable earlier, in order: after a power cut
 * the file system is what some first part of the operations made of it, all those included that were acknowledged as durable.
 */
typedef struct nandu_fs nandu_fs;

#define NANDU_ROOT UINT64_C(1)

/* Seconds since 1970, and nanoseconds below a billion. */
typedef struct nandu_time {
    int64_t seconds;
    uint32_t nanoseconds;
    uint32_t reserved;
} nandu_time;

/* Choices made when a file system is formatted or mounted. Zeroed, it has the defaults. */
typedef struct nandu_fs_options {
    uint64_t salt;          /* at format: as of a store */
    uint32_t volume;        /* the volume's id; 0: left open */
    uint32_t cache_size;    /* bytes for nodes of the tree; 0 stands for 4,096, and 1 is as good as none */
    uint32_t pending_size;  /* bytes for changes, at least 600 are used; 0 stands for 8,192. A volume takes as many to mount as it was last used with */
    uint32_t open_max;      /* files that may be open at a time; 0 stands for 64 */
    uint32_t snapshot;      /* mount what this snapshot keeps, to be read; 0: what there is now */
    uint32_t reads_max;     /* as of a store */
    uint8_t both_modes;     /* 1: blocks with one bit and with two bits a cell, on a chip that has both */
    uint8_t without_tags;   /* 1: at format, leave protected spare bytes alone */
    uint8_t read_only;      /* 1: refuse every change; a mount after a power cut repairs all the same */
    uint8_t read_back;      /* as of a store */
    uint8_t aligned;        /* as of a store */
    uint8_t stream_count;   /* 0: left open */
    uint8_t ready_max;      /* 0: left open */
    uint8_t commit_twice;   /* as of a store; no page has a tag then */
} nandu_fs_options;

/* What a file system begins with. Zeroed, it has the defaults. */
typedef struct nandu_fs_format_options {
    uint8_t hash_key[16]; /* by chance, so that nobody can make names collide on purpose */
    uint32_t root_mode;   /* permissions of the root; 0 stands for 0755 */
    uint32_t uid;         /* owner of the root */
    uint32_t gid;
    uint32_t reserved;
    nandu_time now;
} nandu_fs_format_options;

/* Bytes of memory that format and mount take, as nandu_store_memory. options may be null. */
size_t nandu_fs_memory(const nandu_chip *chip, const nandu_fs_options *options);

/* Makes an empty file system and mounts it, as nandu_store_format, at the same cost. options and format may be null. */
int nandu_fs_format(nandu_fs **fs, const nandu_chip *chip, const nandu_fs_options *options, const nandu_fs_format_options *format, void *memory, size_t memory_size);

/* Mounts the file system on a chip. Costs at most 40 reads, whatever the power did, and after a power cut a few programs. Errors: as nandu_store_open; NO_FILE_SYSTEM. */
int nandu_fs_mount(nandu_fs **fs, const nandu_chip *chip, const nandu_fs_options *options, void *memory, size_t memory_size);

/* Makes everything durable and leaves the file system so that the next mount has nothing to recover. The handle is closed also after an
 * error. Errors: FULL; those of the chip. */
int nandu_fs_unmount(nandu_fs *fs);

/* Closes the handle and leaves the chip as it is, as if the power had gone. Costs nothing; the next mount recovers. */
int nandu_fs_abandon(nandu_fs *fs);

/* The time that changes from now on are stamped with, in whole milliseconds. Costs nothing. */
int nandu_fs_set_now(nandu_fs *fs, int64_t seconds, uint32_t nanoseconds);

/* Makes all changes so far durable. Programs one page, another where a page is partly written, none if nothing changed. A sync that places changes
 * pays their share of collection besides, as create_at does. Errors: FULL; those of the chip. */
int nandu_fs_sync(nandu_fs *fs);

/* Uses idle time: makes changes durable, removes what was deleted, collects garbage, looking at up to so many pages. Returns 1 if there was
 * anything to do, else 0. */
int nandu_fs_idle(nandu_fs *fs, uint32_t pages);

/* As nandu_store_stats. Costs nothing. */
int nandu_fs_stats(nandu_fs *fs, nandu_stats *stats);

/* As nandu_store_verify. scratch, which may be null with a size of 0, spares walks. */
int32_t nandu_fs_verify(nandu_fs *fs, void *scratch, size_t scratch_size, nandu_report report, void *context);

/* As nandu_store_digest, over every path and what it leads to: type, permissions, owner, device, size, content, target, attributes, and which paths
 * are names of one file. Holes are zeros. Times, numbers of inodes and files without a name do not count. What is partly written in memory is
 * programmed first, which may take a page. Reads each page of every file, and for each name the leaves that it and its inode are in; where files have
 * several names, all leaves and names once more for some of these files. Errors: FULL too, if there is no room for what is partly written. */
int nandu_fs_digest(nandu_fs *fs, uint64_t *digest);

/* As nandu_store_snapshot, of all files, with what was written and not synced. nandu_fs_options.snapshot mounts one, to be read. */
int nandu_fs_snapshot(nandu_fs *fs, uint32_t *snapshot);

/* As nandu_store_release. */
int nandu_fs_release(nandu_fs *fs, uint32_t snapshot);

/* As nandu_store_snapshots. */
int nandu_fs_snapshots(nandu_fs *fs, uint32_t *snapshots, size_t capacity);

/* How much room there is, in pages. */
typedef struct nandu_statfs {
    uint64_t blocks;           /* pages that can hold something */
    uint64_t blocks_free;      /* pages of these that hold nothing that is needed, at least */
    uint64_t blocks_available; /* pages of files that can be written */
    uint64_t files_free;       /* inodes there can still be */
    uint32_t block_size;       /* bytes of a page */
    uint32_t name_size_max;    /* bytes that a name may have */
} nandu_statfs;

/* Costs a pass over a table in memory. */
int nandu_fs_statfs(nandu_fs *fs, nandu_statfs *statfs);

/* Types of what a name leads to. */
#define NANDU_TYPE_FIFO 1
#define NANDU_TYPE_CHARACTER_DEVICE 2
#define NANDU_TYPE_DIRECTORY 4
#define NANDU_TYPE_BLOCK_DEVICE 6
#define NANDU_TYPE_FILE 8
#define NANDU_TYPE_SYMLINK 10
#define NANDU_TYPE_SOCKET 12

/* What is known of an inode. */
typedef struct nandu_stat {
    uint64_t ino;
    uint64_t size;           /* bytes; of a directory names in it */
    uint64_t allocated_size; /* bytes of flash that its content has been given */
    nandu_time atime;        /* last read, as far as that is noted */
    nandu_time mtime;        /* last change of the content */
    nandu_time ctime;        /* last change of anything */
    nandu_time btime;        /* when it was made */
    uint32_t mode;           /* type and permissions, as POSIX has them */
    uint32_t type;           /* NANDU_TYPE_... */
    uint32_t uid;
    uint32_t gid;
    uint32_t nlink;
    uint32_t reserved;
} nandu_stat;

/* What is known of what a path leads to. Reads the leaves of its names and its own. Errors: NOT_FOUND, NOT_DIRECTORY, NAME_SIZE. */
int nandu_fs_stat(nandu_fs *fs, const char *path, nandu_stat *stat);

/* The same of an inode. Errors: NO_INODE. */
int nandu_fs_stat_at(nandu_fs *fs, uint64_t ino, nandu_stat *stat);

/* The number of what a path leads to. Reads a leaf for each name. Errors: NOT_FOUND, NOT_DIRECTORY, NAME_SIZE. */
int nandu_fs_lookup(nandu_fs *fs, const char *path, uint64_t *ino);

/* The number of what a name in a directory leads to; "." and ".." too. Errors: the same. */
int nandu_fs_lookup_at(nandu_fs *fs, uint64_t directory, const char *name, uint64_t *ino);

/* Makes an empty file in a directory; mode holds its permissions. ino may be null. Durable at the next sync, with one program for all of it. Programs
 * nothing as a rule; where memory for changes is used up some go to their places.
 * Errors: EXISTS, FULL, NAME, NAME_SIZE, NOT_DIRECTORY. */
int nandu_fs_create_at(nandu_fs *fs, uint64_t directory, const char *name, uint32_t mode, uint64_t *ino);

/* Makes a directory. Durable when it returns, with all before it. Programs one page and its share of collection, as create_at does. Errors: as
 * create_at. */
int nandu_fs_mkdir(nandu_fs *fs, const char *path, uint32_t mode);
int nandu_fs_mkdir_at(nandu_fs *fs, uint64_t directory, const char *name, uint32_t mode, uint64_t *ino);

/* Removes a name that does not lead to a directory. With the last name goes the file, or when it is closed. Durable at the next sync. Works on
 * a full chip too. Errors: NOT_FOUND, IS_DIRECTORY. */
int nandu_fs_unlink(nandu_fs *fs, const char *path);
int nandu_fs_unlink_at(nandu_fs *fs, uint64_t directory, const char *name);

/* Removes an empty directory. Durable at the next sync. Errors: NOT_FOUND, NOT_DIRECTORY, NOT_EMPTY. */
int nandu_fs_rmdir(nandu_fs *fs, const char *path);
int nandu_fs_rmdir_at(nandu_fs *fs, uint64_t directory, const char *name);

/* What a rename does with a name that is there. */
#define NANDU_RENAME_REPLACE 0
#define NANDU_RENAME_NO_REPLACE 1 /* EXISTS */
#define NANDU_RENAME_EXCHANGE 2   /* both names change places */

/* Gives what has a path another one, and replaces what has that, all at once: after a power cut both are as they were, or as they are to be.
 * Durable when it returns, and with it all that was written before. Programs one page and its share of collection, as create_at does. Errors:
 * NOT_FOUND, EXISTS, IS_DIRECTORY, NOT_DIRECTORY, NOT_EMPTY, LOOP, FULL. */
int nandu_fs_rename(nandu_fs *fs, const char *from, const char *to, int mode);
int nandu_fs_rename_at(nandu_fs *fs, uint64_t from_directory, const char *from, uint64_t to_directory, const char *to, int mode);

/* By number, without opening: what nandu_file_read, nandu_file_write and nandu_file_truncate do, at an offset. Errors: NO_INODE, IS_DIRECTORY,
 * NOT_FILE too. */
int32_t nandu_fs_read_at(nandu_fs *fs, uint64_t ino, uint64_t offset, void *buffer, size_t buffer_size);
int32_t nandu_fs_write_at(nandu_fs *fs, uint64_t ino, uint64_t offset, const void *data, size_t size);
int nandu_fs_truncate_at(nandu_fs *fs, uint64_t ino, uint64_t size);

/* What a new attribute may replace. */
#define NANDU_XATTR_SET 0
#define NANDU_XATTR_CREATE 1  /* it must not be there: EXISTS */
#define NANDU_XATTR_REPLACE 2 /* it must be there: NOT_FOUND */

/* Copies an extended attribute of an inode and returns its size; with a size of 0 it is only measured. Errors: NOT_FOUND, BUFFER, NO_INODE. */
int32_t nandu_fs_get_xattr(nandu_fs *fs, uint64_t ino, const char *name, void *buffer, size_t buffer_size);

/* Sets an extended attribute: name of 255 bytes at most, fewer on pages of 512 bytes, and value of 65,536 at most; of how many an inode has there
 * is no limit but the room. After a cut it has the old value or the new one, whole. Durable at the next sync, or at once where it takes more than a
 * page; one of more than 4,096 bytes, its name included, takes about as many programs as it has pages, and as many again to remove the one before.
 * Errors: EXISTS, NOT_FOUND, XATTR_SIZE, NAME_SIZE, FULL, NO_INODE. */
int nandu_fs_set_xattr(nandu_fs *fs, uint64_t ino, const char *name, const void *value, size_t value_size, int mode);

/* Removes an extended attribute. Durable at the next sync. Errors: NOT_FOUND, NO_INODE. */
int nandu_fs_remove_xattr(nandu_fs *fs, uint64_t ino, const char *name);

/* Copies the names of all attributes, each with a zero behind it, and returns the bytes of all; with a size of 0 they are only measured.
 * Errors: BUFFER, NO_INODE. */
int32_t nandu_fs_list_xattrs(nandu_fs *fs, uint64_t ino, void *buffer, size_t buffer_size);

/* ---- Open files --------------------------------------------------------------------------------------------------------------- */

/* An open file, with a position. It is to be closed, else it stays open until the file system is unmounted. */
typedef struct nandu_file {
    void *fs;
    uint64_t opaque[4];
} nandu_file;

/* How a file is opened. */
#define NANDU_OPEN_READ 1
#define NANDU_OPEN_WRITE 2
#define NANDU_OPEN_CREATE 4    /* make it if it is not there, with permissions 0644 */
#define NANDU_OPEN_EXCLUSIVE 8 /* EXISTS if it is there */
#define NANDU_OPEN_TRUNCATE 16 /* cut it to nothing */
#define NANDU_OPEN_APPEND 32   /* each write goes to the end */

/* Opens the file at a path, at its beginning. Making and cutting are durable at the next sync. Reads a leaf for each name. Errors:
 * NOT_FOUND, EXISTS, IS_DIRECTORY, NOT_FILE, TOO_MANY_OPEN, FULL. */
int nandu_file_open(nandu_file *file, nandu_fs *fs, const char *path, int flags);

/* Opens the file of a number. Flags are READ, WRITE, TRUNCATE and APPEND. */
int nandu_file_open_at(nandu_file *file, nandu_fs *fs, uint64_t ino, int flags);

/* Closes a file. One without a name is removed. Makes nothing durable. */
int nandu_file_close(nandu_file *file);

/* Reads from the position on, which moves; returns how many bytes, 0 at the end. Reads a page for each page of the file, and their leaves.
 * Errors: ACCESS, CORRUPT; those of the chip. */
int32_t nandu_file_read(nandu_file *file, void *buffer, size_t buffer_size);

/* Writes at the position, which moves; returns how many bytes, fewer than given if there is room for no more. Durable at the next sync.
 * Programs a page for each page of the file that is written wholly; parts of pages gather in memory. Errors: ACCESS, FULL, FILE_SIZE. */
int32_t nandu_file_write(nandu_file *file, const void *data, size_t size);

/* From where an offset counts. */
#define NANDU_FROM_START 0
#define NANDU_FROM_POSITION 1
#define NANDU_FROM_END 2

/* Moves the position and returns it, or a negative error. Behind the end a read finds nothing, and a write leaves a hole before it. Costs nothing,
 * but FROM_END what stat does. Errors: RANGE before the beginning. */
int64_t nandu_file_seek(nandu_file *file, int64_t offset, int from);

/* Bytes of the file, or a negative error. Reads what stat does. */
int64_t nandu_file_size(nandu_file *file);

/* Makes a file shorter, or longer by what reads as zeros. Durable at the next sync. Errors: ACCESS, FILE_SIZE, FULL. */
int nandu_file_truncate(nandu_file *file, uint64_t size);

/* Makes the file durable (fsync), with all that was done to it and all that was done before to any file. Costs what nandu_fs_sync does. */
int nandu_file_sync(nandu_file *file);

/* The number of the file's inode. Costs nothing. */
int nandu_file_ino(nandu_file *file, uint64_t *ino);

/* ---- Directories -------------------------------------------------------------------------------------------------------------- */

/* A position in a directory. It borrows nothing, and holds nothing open. */
typedef struct nandu_dir {
    void *fs;
    uint64_t opaque[3];
} nandu_dir;

/* A name in a directory. */
typedef struct nandu_dirent {
    uint64_t ino;
    uint32_t type;   /* NANDU_TYPE_... */
    char name[256];  /* with a zero behind it */
} nandu_dirent;

/* Opens a directory, before its first name. Errors: NOT_FOUND, NOT_DIRECTORY. */
int nandu_dir_open(nandu_dir *dir, nandu_fs *fs, const char *path);
int nandu_dir_open_at(nandu_dir *dir, nandu_fs *fs, uint64_t ino);

/* The next name, "." and ".." first, in no order that means anything. Returns 1, or 0 behind the last. Names that are there all the time are
 * met once, whatever comes and goes meanwhile. Reads the leaf that the name is in. */
int nandu_dir_read(nandu_dir *dir, nandu_dirent *entry);

/* Back before the first name. */
int nandu_dir_rewind(nandu_dir *dir);

/* Closes a directory. */
int nandu_dir_close(nandu_dir *dir);

/* ---- Static memory ------------------------------------------------------------------------------------------------------------ */

/*
 * Memory of known size, for static buffers, for one bit a cell; nandu_store_memory and nandu_fs_memory say what is needed exactly. Beside the
 * handle the macros count up to 3 % and 64 bytes more. Sizes of options are given as they are used, not as 0.
 *
 *     static uint8_t memory[NANDU_STORE_MEMORY(2048, 1024, 8192, 0)];
 *
 * The size of the handle is more than a library with all features takes. With fewer, a program may define it lower: what the macro
 * counts beyond nandu_store_memory is wasted.
 */
#ifndef NANDU_STORE_HANDLE_SIZE
#define NANDU_STORE_HANDLE_SIZE (sizeof(void *) == 8 ? 8192u : 6144u)
#endif
#ifndef NANDU_FS_HANDLE_SIZE
#define NANDU_FS_HANDLE_SIZE (sizeof(void *) == 8 ? 8192u : 7168u)
#endif

#define NANDU_MIN_(a, b) ((a) < (b) ? (a) : (b))
#define NANDU_MAX_(a, b) ((a) > (b) ? (a) : (b))

/* Three pages of the tree and one of the log; keys of a change; what a snapshot is to keep. Blocks have 6 bytes each, and pages of the block table 8
 * for each 4 bytes of a block in them. */
#define NANDU_TREE_MEMORY_(page_size, block_count) \
    (4u * (page_size) + 512u + NANDU_MAX_((page_size) / 2u, 1120u) + 6u * (block_count) + 8u * ((block_count) / (((page_size) - 128u) / 4u) + 1u))

/* Of changes that wait at least one of the longest key has room to go to its place. */
#define NANDU_PENDING_(size) ((size) == 0u ? 0u : NANDU_MAX_(size, 600u))

/* A store without alignment for DMA. A large value that is put takes what stands last. */
#define NANDU_STORE_MEMORY(page_size, block_count, cache_size, pending_size) \
    (8u + NANDU_STORE_HANDLE_SIZE + NANDU_TREE_MEMORY_(page_size, block_count) + (cache_size) + NANDU_PENDING_(pending_size) + (page_size) / 4u \
     + NANDU_MIN_(2u * (page_size) / 3u, 1168u))

/* A file system without both_modes and alignment for DMA. The page that is written waits in memory, of which changes of names need 2 KiB. Of two groups of
 * pages of files there is in memory whose they are, 12 bytes each. */
#define NANDU_FS_MEMORY(page_size, pages_per_block, block_count, cache_size, pending_size, open_max) \
    (8u + NANDU_FS_HANDLE_SIZE + NANDU_TREE_MEMORY_(page_size, block_count) + (cache_size) + NANDU_PENDING_(pending_size) + 108u + NANDU_MAX_(page_size, 2048u) \
     + 24u * NANDU_MIN_((page_size) / 12u, pages_per_block) + 12u * (open_max))

#ifdef __cplusplus
}
#endif

#endif
