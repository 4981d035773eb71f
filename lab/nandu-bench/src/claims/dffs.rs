//! What the DFFS paper claims.

use super::{ANY, GIVEN, MORE, NEAR, SETTINGS, exact, near, open, over, within};
use crate::claim::{Claim, Paper, Test};

const TABLE1: &str = "paper/mutree-table1";
const OPS: &str = "paper/dffs-ops";
const POSTMARK: &str = "paper/dffs-postmark";
const FILEBENCH: &str = "paper/dffs-filebench";
const MOUNT: &str = "paper/dffs-mount";
const GC: &str = "paper/dffs-gc";
const DIRECTORIES: &str = "paper/dffs-directories";

const PROGRAMS: &str = "programs_per_op";
const TIME: &str = "flash_s";

const fn claim(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    super::claim(Paper::Dffs, place, says, tests, reason)
}

const fn undecided(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    open(Paper::Dffs, place, says, tests, reason)
}

/// The time of one over that of another, of an experiment.
const fn slower(
    label: &'static str,
    experiment: &'static str,
    one: &'static str,
    other: &'static str,
    theirs: &'static str,
) -> Test {
    over(label, experiment, ((one, TIME), (other, TIME)), theirs, (MORE, ANY))
}

const FLASH_ONLY: &str = "The paper measured a board of 2010 with its kernel, processor and all. Operations on flash, which is what can be counted, come to what stands here; the rest is software that was not published.";
const MODELS: &str = "DFFS itself beside models of the others, which count operations on flash.";

pub(super) const CLAIMS: &[Claim] = &[
    undecided(
        "table 1",
        "The times and shapes of an SLC and an MLC chip.",
        &[
            exact("page", TABLE1, "*", "page_bytes"),
            exact("spare area", TABLE1, "*", "spare_bytes"),
            exact("pages of a block", TABLE1, "*", "pages_per_block"),
            exact("read", TABLE1, "*", "read_us"),
            exact("program", TABLE1, "*", "program_us"),
            exact("erase", TABLE1, "*", "erase_us"),
        ],
        GIVEN,
    ),
    claim(
        "table 2",
        "JFFS2 and YAFFS2 need much memory, DFFS little.",
        &[
            over(
                "JFFS2 over DFFS, 1,300 files",
                MOUNT,
                (("1300/jffs2", "memory"), ("1300/dffs", "memory")),
                "more",
                (MORE, ANY),
            ),
            over(
                "YAFFS2 over DFFS, 1,300 files",
                MOUNT,
                (("1300/yaffs2", "memory"), ("1300/dffs", "memory")),
                "more",
                (MORE, ANY),
            ),
        ],
        "Directories are left out of the models' memory.",
    ),
    claim(
        "table 2",
        "UBIFS needs little memory.",
        &[over(
            "JFFS2 over UBIFS, 10,000 files",
            MOUNT,
            (("small/10000/jffs2", "memory"), ("small/10000/ubifs", "memory")),
            "more",
            (MORE, ANY),
        )],
        "With many files. With few its buffers are more than all that JFFS2 has, as the paper says beside figure 8.",
    ),
    claim(
        "table 2",
        "JFFS2 takes long to mount, DFFS does not.",
        &[over(
            "JFFS2 over DFFS, 1,300 files",
            MOUNT,
            (("1300/jffs2", "mount_ms"), ("1300/dffs", "mount_ms")),
            "longer",
            (100.0, ANY),
        )],
        "Longer is taken as a hundred times.",
    ),
    undecided(
        "table 2",
        "YAFFS2 and UBIFS mount quickly.",
        &[within(
            "YAFFS2 without a checkpoint, 1,300 files",
            MOUNT,
            ("1300/yaffs2", "mount_ms"),
            "short",
            (0.0, 100.0),
        )],
        "The table has YAFFS2 with its checkpoint and figure 8 has it scan; the model scans. The mount of UBIFS is not modelled.",
    ),
    undecided(
        "table 2",
        "UBIFS and DFFS are for large chips, JFFS2 and YAFFS2 for small ones.",
        &[],
        "A judgement. What it rests on is memory and mounts, above.",
    ),
    undecided("table 3", "The board, its kernel and its chip.", &[], SETTINGS),
    undecided("table 4", "The settings of Filebench.", &[], SETTINGS),
    claim(
        "section 3",
        "A name of a path costs one page read, since a directory and its entries are one page.",
        &[within("reads for each name", DIRECTORIES, ("depth/*/dffs", "reads_per_name"), "1", (0.0, 1.0))],
        "In directories of ten names. With many names a lookup goes down a chain of pages.",
    ),
    claim(
        "section 4.1",
        "Making or removing a file programs its directory once, with entry and inode together.",
        &[
            within(
                "create: inode and directory",
                OPS,
                ("dffs/create_fsync", PROGRAMS),
                "1 beside the inode",
                (2.0 * (1.0 - NEAR), 2.0 * (1.0 + NEAR)),
            ),
            within("unlink", OPS, ("dffs/unlink", PROGRAMS), "1", (1.0 - NEAR, 1.0 + NEAR)),
        ],
        "With 100 directories. In directories of 120 names and more an unlink takes 1.19, since the last entry of a bucket fills the hole.",
    ),
    claim(
        "section 4.2",
        "Collisions in a directory are rare.",
        &[
            within(
                "100 names",
                DIRECTORIES,
                ("names/100/dffs", "collided_share"),
                "rare (taken as one name in ten)",
                (0.0, 0.1),
            ),
            within(
                "1,000 names",
                DIRECTORIES,
                ("names/1000/dffs", "collided_share"),
                "rare (taken as one name in ten)",
                (0.0, 0.1),
            ),
        ],
        "A page has 347 buckets, so of 100 names about 13 share one. It holds for tens of names.",
    ),
    claim(
        "section 4.3",
        "A directory page of 2 KB has 347 buckets.",
        &[within(
            "reads of a lookup among 10,000 names",
            DIRECTORIES,
            ("names/10000/dffs", "reads_bare"),
            "2 + 9999 / (2 x 347) = 16.4",
            (16.4 * (1.0 - NEAR), 16.4 * (1.0 + NEAR)),
        )],
        "The length of chains is what so many buckets make it.",
    ),
    undecided(
        "section 4.2",
        "A map of 32,768 directories suffices: an installation of Linux has fewer than 20,000.",
        &[],
        "How many directories an installation has is nothing that the lab measures.",
    ),
    claim(
        "figure 8",
        "The memory of JFFS2 and YAFFS2 grows in proportion to the files.",
        &[
            over(
                "JFFS2, 1,300 over 100 files",
                MOUNT,
                (("1300/jffs2", "memory"), ("100/jffs2", "memory")),
                "13",
                (13.0 * (1.0 - NEAR), 13.0 * (1.0 + NEAR)),
            ),
            over(
                "YAFFS2, 1,300 over 100 files",
                MOUNT,
                (("1300/yaffs2", "memory"), ("100/yaffs2", "memory")),
                "13",
                (13.0 * (1.0 - NEAR), 13.0 * (1.0 + NEAR)),
            ),
        ],
        "By models of their structures in memory.",
    ),
    claim(
        "figure 8",
        "UBIFS needs about 400 KB whatever the files.",
        &[near("", MOUNT, "*/ubifs", "memory")],
        "By a model of its buffers.",
    ),
    claim(
        "figure 8",
        "The memory of DFFS does not depend on the files, and is far less than that of UBIFS.",
        &[
            within("10,000 over 10 files", MOUNT, ("small/*/dffs", "memory_over_few"), "1", (1.0, 1.0)),
            over(
                "DFFS over UBIFS",
                MOUNT,
                (("*/dffs", "memory"), ("*/ubifs", "memory")),
                "far less (taken as half)",
                (0.0, 0.5),
            ),
        ],
        "All the memory that DFFS is given, not to the byte what a mount touches.",
    ),
    claim(
        "figure 8",
        "Mounts of JFFS2 and YAFFS2 take up to several seconds.",
        &[
            within("JFFS2, 1,300 files", MOUNT, ("1300/jffs2", "mount_ms"), "seconds", (1000.0, 10_000.0)),
            within("YAFFS2, 1,300 files", MOUNT, ("1300/yaffs2", "mount_ms"), "seconds", (1000.0, 10_000.0)),
        ],
        "The chip's time for the pages in use, of a model.",
    ),
    claim(
        "figure 8",
        "Mounts of JFFS2 and YAFFS2 grow in proportion to the files.",
        &[
            over(
                "JFFS2, 1,300 over 100 files",
                MOUNT,
                (("1300/jffs2", "mount_ms"), ("100/jffs2", "mount_ms")),
                "13",
                (10.0, 13.7),
            ),
            over(
                "YAFFS2, 1,300 over 100 files",
                MOUNT,
                (("1300/yaffs2", "mount_ms"), ("100/yaffs2", "mount_ms")),
                "13",
                (10.0, 13.7),
            ),
        ],
        "A free block costs a read as well, so less than in proportion where files are few: 10 to 13.7 is accepted.",
    ),
    claim(
        "figure 8",
        "DFFS mounts instantly.",
        &[
            within("left in order", MOUNT, ("*/dffs", "mount_ms"), "instantly (taken as 5 ms)", (0.0, 5.0)),
            within("10,000 files", MOUNT, ("small/10000/dffs", "mount_ms"), "instantly (taken as 5 ms)", (0.0, 5.0)),
        ],
        "The paper says nothing of cuts; after one a mount of DFFS reads a page of each free block and the inodes since the checkpoint (`-cut`).",
    ),
    undecided(
        "figure 8",
        "UBIFS mounts instantly.",
        &[],
        "The model of UBIFS does not mount. What the kernel's own of today reads in a mount stands in `vs/kernel`.",
    ),
    claim(
        "figure 9",
        "UBIFS is the slowest in Postmark.",
        &[
            slower("UBIFS over JFFS2", POSTMARK, "250/4k/ubifs", "250/4k/jffs2", "slower"),
            slower("UBIFS over YAFFS2", POSTMARK, "250/4k/ubifs", "250/4k/yaffs2", "slower"),
            slower("UBIFS over DFFS", POSTMARK, "250/4k/ubifs", "250/4k/dffs", "slower"),
        ],
        "With JFFS2 and YAFFS2 as they were, which take no notice of syncs. A YAFFS2 that honours them (`yaffs2-flushed`) is slower than UBIFS.",
    ),
    undecided(
        "figure 9",
        "DFFS is about 3.5 times as fast as UBIFS in Postmark.",
        &[within(
            "250 MiB",
            POSTMARK,
            ("250/4k/dffs", "speedup_over_ubifs"),
            "3.5",
            (3.5 * (1.0 - NEAR), 3.5 * (1.0 + NEAR)),
        )],
        FLASH_ONLY,
    ),
    claim(
        "figure 9",
        "DFFS is faster than UBIFS in Postmark.",
        &[
            within("250 MiB", POSTMARK, ("250/4k/dffs", "speedup_over_ubifs"), "faster", (MORE, ANY)),
            within("400 MiB", POSTMARK, ("400/4k/dffs", "speedup_over_ubifs"), "faster", (MORE, ANY)),
        ],
        MODELS,
    ),
    claim(
        "figure 9",
        "YAFFS2 is faster than JFFS2 in Postmark, since its headers are smaller.",
        &[slower("JFFS2 over YAFFS2", POSTMARK, "250/4k/jffs2", "250/4k/yaffs2", "slower")],
        "By operations on flash they are even: a header of JFFS2 is 68 bytes for 4 KB, and YAFFS2 has a page with the header of each file. Which rules of syncs the paper's versions had decides more (`-flushed`).",
    ),
    claim(
        "section 6",
        "With synced writes UBIFS and DFFS can be slower than JFFS2 and YAFFS2.",
        &[
            slower("DFFS over JFFS2", POSTMARK, "250/4k/dffs", "250/4k/jffs2", "slower"),
            slower("DFFS over YAFFS2", POSTMARK, "250/4k/dffs", "250/4k/yaffs2", "slower"),
            slower("UBIFS over JFFS2", POSTMARK, "250/4k/ubifs", "250/4k/jffs2", "slower"),
        ],
        "With JFFS2 and YAFFS2 as they were, which take no notice of syncs.",
    ),
    claim(
        "section 5.3",
        "Inodes and directories in logs of their own make collection cheap.",
        &[
            within(
                "60 % in use, moved over one log's",
                GC,
                ("60/six-areas", "moved_over_one_log"),
                "less than 1",
                (0.0, 0.999_999),
            ),
            within(
                "70 % in use, moved over one log's",
                GC,
                ("70/six-areas", "moved_over_one_log"),
                "less than 1",
                (0.0, 0.999_999),
            ),
        ],
        "The same programs of one model. With 80 % in use one log finds no room any more, and six areas go on.",
    ),
    claim(
        "section 5.3",
        "UBIFS takes longer for data, because of headers of nodes.",
        &[over(
            "programs of 64 KiB, UBIFS over DFFS",
            OPS,
            (("table/write_64k/ubifs", PROGRAMS), ("dffs/append_64k_osync", PROGRAMS)),
            "more",
            (MORE, ANY),
        )],
        "",
    ),
    undecided(
        "figure 10",
        "DFFS is up to 25 % faster than UBIFS in Filebench.",
        &[
            near("create", FILEBENCH, "create/dffs", "speedup_over_ubifs"),
            near("copy", FILEBENCH, "copy/dffs", "speedup_over_ubifs"),
        ],
        FLASH_ONLY,
    ),
    claim(
        "figure 10",
        "DFFS is faster than UBIFS where files are made and copied.",
        &[
            within("create", FILEBENCH, ("create/dffs", "speedup_over_ubifs"), "faster", (MORE, ANY)),
            within("copy", FILEBENCH, ("copy/dffs", "speedup_over_ubifs"), "faster", (MORE, ANY)),
        ],
        MODELS,
    ),
    claim(
        "figure 10",
        "DFFS is faster than UBIFS where files come and go.",
        &[within("create and delete", FILEBENCH, ("create_delete/dffs", "speedup_over_ubifs"), "faster", (MORE, ANY))],
        "It programs 2 % less, but ours erases each block right before its first program and the model of UBIFS has erased blocks, as the paper's UBIFS had: 1,751 erases more take 3.6 s.",
    ),
    claim(
        "figure 10",
        "UBIFS is faster than JFFS2 where files are made and copied with data synced.",
        &[
            slower("create, JFFS2 over UBIFS", FILEBENCH, "create/jffs2-flushed", "create/ubifs", "slower"),
            slower("copy, JFFS2 over UBIFS", FILEBENCH, "copy/jffs2-flushed", "copy/ubifs", "slower"),
        ],
        "By operations on flash of models that honour syncs: for 4 KB written and synced JFFS2 programs three pages of 2 KB, and UBIFS 4.2, since it has an inode and its index to keep.",
    ),
    claim(
        "figure 10",
        "UBIFS and DFFS are faster than JFFS2 and YAFFS2 where files come and go.",
        &[
            slower("JFFS2 over UBIFS", FILEBENCH, "create_delete/jffs2-flushed", "create_delete/ubifs", "slower"),
            slower("YAFFS2 over UBIFS", FILEBENCH, "create_delete/yaffs2-flushed", "create_delete/ubifs", "slower"),
            slower("JFFS2 over DFFS", FILEBENCH, "create_delete/jffs2-flushed", "create_delete/dffs", "slower"),
            slower("YAFFS2 over DFFS", FILEBENCH, "create_delete/yaffs2-flushed", "create_delete/dffs", "slower"),
        ],
        "By operations on flash all four are within a fifth of each other: with writes of 64 KB nearly every program is one of data. DFFS erases each block right before its first program, the models have erased blocks.",
    ),
    claim(
        "figure 10",
        "YAFFS2 is the slowest where files come and go.",
        &[
            slower(
                "YAFFS2 over JFFS2",
                FILEBENCH,
                "create_delete/yaffs2-flushed",
                "create_delete/jffs2-flushed",
                "slower",
            ),
            slower("YAFFS2 over UBIFS", FILEBENCH, "create_delete/yaffs2-flushed", "create_delete/ubifs", "slower"),
            slower("YAFFS2 over DFFS", FILEBENCH, "create_delete/yaffs2-flushed", "create_delete/dffs", "slower"),
        ],
        "By operations on flash it is slower than JFFS2 alone. What its collector moves here is little; how full the paper's chip was is not told.",
    ),
];
