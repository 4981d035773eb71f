//! What the paper on group round robin claims.

use super::{ANY, GIVEN, MORE, NEAR, SETTINGS, SYMBOLS, as_printed, exact, near, open, over, within};
use crate::claim::{Claim, Paper, Test};

const TABLE2: &str = "paper/grr-table2";
const FIGURE6: &str = "paper/grr-figure6";
const FIGURE7: &str = "paper/grr-figure7";
const FIGURE8: &str = "paper/grr-figure8";
const PARTS: &str = "paper/grr-parts";

const SPEEDUP: &str = "speedup_over_ipl";
const HITS: &str = "hit_ratio";
const HITS_OVER_IPL: &str = "hit_ratio_over_ipl";

const fn claim(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    super::claim(Paper::Grr, place, says, tests, reason)
}

const fn undecided(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    open(Paper::Grr, place, says, tests, reason)
}

/// Its hit ratio over that of IPL, above it or as much.
const fn above(label: &'static str, case: &'static str) -> Test {
    within(label, FIGURE7, (case, HITS_OVER_IPL), "more than 1", (1.0, ANY))
}

/// The next mix over the one before.
const fn step(label: &'static str, next: &'static str, before: &'static str) -> Test {
    over(label, FIGURE8, ((next, SPEEDUP), (before, SPEEDUP)), "more", (MORE, ANY))
}

const ONE_LOG_PAGE: &str = "Against an IPL with one log page of 4 KiB in a block, as the paper has it; it was published with twice as much, and with as many log pages as suit it IPL is within 6 % (`paper/grr-fair`).";
const BUFFER: &str = "As long as a change reads its leaf, the buffer gives up what it read before it gives up changes, and has fewer leaves than LRU. With changes that do not read (`blind`) it has far more, and then figures 6 and 8 do not come out.";

pub(super) const CLAIMS: &[Claim] = &[
    undecided("table 1", "The symbols of the scheme.", &[], SYMBOLS),
    claim(
        "table 2",
        "GRR erases no more than IPL.",
        &[within("erases over IPL's", TABLE2, ("*/*/all", "erases_over_ipl"), "0 to 1", (0.0, 1.0))],
        "",
    ),
    claim(
        "table 2",
        "A node of IPL costs two page reads: its own and the log page.",
        &[
            as_printed("20/80", TABLE2, "20/80/ipl", "reads_per_load", 0.0, 0.1),
            as_printed("0/100", TABLE2, "0/100/ipl", "reads_per_load", 0.0, 0.1),
        ],
        "To a tenth: a merge leaves the log page empty, and then a node is one read. With reads alone no log page is begun.",
    ),
    claim(
        "table 2",
        "A node of GRR costs as many reads as one of IPL or more, at most its own and those of all log pages.",
        &[
            over(
                "over IPL's",
                TABLE2,
                (("*/*/grr", "reads_per_load"), ("*/*/ipl", "reads_per_load")),
                "at least 1",
                (1.0, ANY),
            ),
            within("reads", TABLE2, ("*/*/grr", "reads_per_load"), "at most k + 1 = 5", (1.0, 5.0)),
        ],
        "If log pages with nothing in them are not read. With all of them read, as the table says literally, GRR would take 2.5 times as long as IPL with reads alone, which figure 8 denies.",
    ),
    claim(
        "table 2",
        "GRR takes as much space as IPL or more.",
        &[within("blocks over IPL's", TABLE2, ("*/*/all", "blocks_over_ipl"), "at least 1", (1.0, ANY))],
        "",
    ),
    undecided(
        "table 3",
        "The times of a read, a program and an erase.",
        &[
            exact("read", TABLE2, "chip", "read_us"),
            exact("program", TABLE2, "chip", "program_us"),
            exact("erase", TABLE2, "chip", "erase_us"),
        ],
        GIVEN,
    ),
    undecided("table 4", "The settings of the experiments.", &[], SETTINGS),
    claim(
        "section 3.3",
        "Filling blocks in turn keeps single blocks from wearing out.",
        &[
            over(
                "most erases of a block, 20/80",
                TABLE2,
                (("20/80/grr", "erase_count_most"), ("20/80/ipl", "erase_count_most")),
                "fewer than IPL's",
                (0.0, 0.999_999),
            ),
            over(
                "most erases of a block, 0/100",
                TABLE2,
                (("0/100/grr", "erase_count_most"), ("0/100/ipl", "erase_count_most")),
                "fewer than IPL's",
                (0.0, 0.999_999),
            ),
        ],
        "There are fewer erases in all, because there is more log space; turns by themselves change nothing (figure 6, m).",
    ),
    claim(
        "section 3.4",
        "The semi-clean state makes a clean-first buffer better.",
        &[over(
            "faster by",
            PARTS,
            (("20/80/buffer", SPEEDUP), ("20/80/buffer-clean-first", SPEEDUP)),
            "more than 1",
            (MORE, ANY),
        )],
        "In time, on IPL's storage. Of the hit ratio, see figure 7.",
    ),
    claim(
        "figure 6",
        "GRR is fastest with four log pages in a block.",
        &[
            within("20/80", FIGURE6, ("all", "best_log_pages"), "4", (4.0, 4.0)),
            within("50/50", FIGURE6, ("50/50/all", "best_log_pages"), "4", (4.0, 4.0)),
        ],
        "With pages of 4 KiB and blocks of 32, which the paper does not state. With pages of 2 KiB it is eight, with pages of 8 KiB two, says the model.",
    ),
    claim(
        "figure 6",
        "GRR is up to 1.67 times as fast as IPL under random work.",
        &[within("50/50, k = 4", FIGURE6, ("50/50/k=4", SPEEDUP), "1.67", (1.67 * (1.0 - NEAR), 1.67 * (1.0 + NEAR)))],
        "With as many reads as writes. The mix of the figure is not stated; with the one that its table of settings marks (20/80) it is 1.97. Against an IPL with one log page in a block.",
    ),
    claim(
        "figure 6",
        "GRR is the faster the more blocks are filled in turn, from 2 to 16.",
        &[within("least gain of doubling m", FIGURE6, ("all", "least_step_over_m"), "more than 1", (1.005, ANY))],
        "On an index of many groups m makes no difference. It helps only where the index is about as large as one group (`few/`), because free pages of the group serve as logs.",
    ),
    claim(
        "figure 7",
        "The hit ratio of GRR is above that of IPL for every k and m.",
        &[
            above("k = 1", "k=1"),
            above("k = 2", "k=2"),
            above("k = 4", "k=4"),
            above("k = 8", "k=8"),
            above("m = 2", "m=2"),
            above("m = 4", "m=4"),
            above("m = 16", "m=16"),
        ],
        BUFFER,
    ),
    claim(
        "figure 7",
        "It is up to 1.60 times that of IPL.",
        &[within("k = 1", FIGURE7, ("k=1", HITS_OVER_IPL), "1.60 at most", (1.60 * (1.0 - NEAR), 1.60 * (1.0 + NEAR)))],
        BUFFER,
    ),
    claim(
        "figure 7",
        "It is about that of IPL with k = 8 and with m = 16.",
        &[near("k = 8", FIGURE7, "k=8", HITS_OVER_IPL), near("m = 16", FIGURE7, "m=16", HITS_OVER_IPL)],
        "It is so for any k and m.",
    ),
    claim(
        "figure 7",
        "It falls as k or m grows.",
        &[
            over("k = 8 over k = 1", FIGURE7, (("k=8", HITS), ("k=1", HITS)), "less than 1", (0.0, 0.99)),
            over("m = 16 over m = 2", FIGURE7, (("m=16", HITS), ("m=2", HITS)), "less than 1", (0.0, 0.99)),
        ],
        "Log pages take no memory. It falls if each is taken to need 2.25 pages of the buffer (`reserve/`), for which the paper gives no reason.",
    ),
    claim(
        "figure 8",
        "With reads alone GRR is as fast as IPL.",
        &[as_printed("", FIGURE8, "100/0", SPEEDUP, 0.01, 0.0)],
        "If log pages with nothing in them are not read.",
    ),
    claim(
        "figure 8",
        "The gap grows with the share of writes.",
        &[
            step("80/20 over 100/0", "80/20", "100/0"),
            step("60/40 over 80/20", "60/40", "80/20"),
            step("40/60 over 60/40", "40/60", "60/40"),
            step("20/80 over 40/60", "20/80", "40/60"),
            step("0/100 over 20/80", "0/100", "20/80"),
        ],
        ONE_LOG_PAGE,
    ),
    claim(
        "figure 8",
        "GRR is clearly faster with more than 60 % of writes.",
        &[
            within("20/80", FIGURE8, ("20/80", SPEEDUP), "clearly (taken as 1.5)", (1.5, ANY)),
            within("0/100", FIGURE8, ("0/100", SPEEDUP), "clearly (taken as 1.5)", (1.5, ANY)),
        ],
        ONE_LOG_PAGE,
    ),
    claim(
        "figure 8",
        "With writes alone GRR is 2.14 times as fast as IPL.",
        &[near("", FIGURE8, "0/100", SPEEDUP)],
        ONE_LOG_PAGE,
    ),
    claim(
        "section 4.5",
        "Most of the gain comes from more log pages in a block.",
        &[over(
            "storage alone over all",
            PARTS,
            (("20/80/storage", SPEEDUP), ("20/80/storage-buffer", SPEEDUP)),
            "most",
            (0.75, 1.0),
        )],
        "",
    ),
    claim(
        "section 4.5",
        "GRR programs fewer pages than IPL.",
        &[
            within("20/80", TABLE2, ("20/80/all", "programs_over_ipl"), "fewer", (0.0, 0.999_999)),
            within("0/100", TABLE2, ("0/100/all", "programs_over_ipl"), "fewer", (0.0, 0.999_999)),
        ],
        "It merges less often. The paper names its buffer as the cause.",
    ),
];
