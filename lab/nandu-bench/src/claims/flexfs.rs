//! What the FlexFS paper claims.

use super::{ANY, GIVEN, MORE, NEAR, SETTINGS, as_printed, exact, near, open, over, within};
use crate::claim::{Claim, Paper, Test};

const TABLE1: &str = "paper/flexfs-table1";
const BASELINE: &str = "paper/flexfs-e1";
const BACKGROUND: &str = "paper/flexfs-e2";
const BUSY: &str = "paper/flexfs-e3";
const LOCALITY: &str = "paper/flexfs-e4";
const RESPONSE: &str = "paper/flexfs-e6";
const BUDGET: &str = "paper/flexfs-e7";
const EVENNESS: &str = "paper/flexfs-e8";
const MOBILE: &str = "paper/flexfs-e9";

const RATE: &str = "mb_per_s";
const DELTA: &str = "delta";

const fn claim(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    super::claim(Paper::FlexFs, place, says, tests, reason)
}

const fn undecided(place: &'static str, says: &'static str, tests: &'static [Test], reason: &'static str) -> Claim {
    open(Paper::FlexFs, place, says, tests, reason)
}

const NO_CACHE: &str = "There is no page cache here, and in the paper nearly all reads are answered by one.";

pub(super) const CLAIMS: &[Claim] = &[
    undecided(
        "table 1",
        "The times of a page and a block with one bit a cell and with two, on one chip.",
        &[
            exact("read", TABLE1, "*", "read_us"),
            exact("program", TABLE1, "*", "program_us"),
            exact("erase", TABLE1, "*", "erase_us"),
        ],
        GIVEN,
    ),
    undecided(
        "table 1",
        "LSB pages alone are nearly as fast as a chip with one bit a cell (431 us beside 417 for a program).",
        &[],
        "It takes both chips.",
    ),
    undecided("table 2", "The four schemes that are compared.", &[], SETTINGS),
    undecided("table 3", "What arrives in each of ten windows.", &[], SETTINGS),
    undecided("table 5", "The applications of the mobile load.", &[], SETTINGS),
    claim(
        "figure 8",
        "With delta 1 three bytes of wear are spent for each byte of the host.",
        &[
            over(
                "window 0",
                BUDGET,
                (("with/window/0", "wear_mb"), ("with/window/0", "host_mb")),
                "3",
                (3.0 * (1.0 - NEAR), 3.0 * (1.0 + NEAR)),
            ),
            over(
                "window 1",
                BUDGET,
                (("with/window/1", "wear_mb"), ("with/window/1", "host_mb")),
                "3",
                (3.0 * (1.0 - NEAR), 3.0 * (1.0 + NEAR)),
            ),
            over(
                "window 2",
                BUDGET,
                (("with/window/2", "wear_mb"), ("with/window/2", "host_mb")),
                "3",
                (3.0 * (1.0 - NEAR), 3.0 * (1.0 + NEAR)),
            ),
        ],
        "An SLC page counts twice, since its block holds half as many.",
    ),
    claim(
        "figure 8",
        "With delta 0 one byte of wear is spent for each byte of the host.",
        &[over(
            "MLC blocks alone",
            MOBILE,
            (("mlc/all", "wear_pages"), ("mlc/all", "pages_written")),
            "1",
            (1.0 - NEAR, 1.0 + NEAR),
        )],
        "",
    ),
    claim(
        "figure 10",
        "Without background migration throughput falls when half of the capacity is written.",
        &[near("falls at", BASELINE, "baseline/all", "falls_at_percent")],
        "A fall is seen at the end of a burst, and bursts end at multiples of 6.25 %.",
    ),
    claim(
        "figure 10",
        "It then falls close to 100 KB/s.",
        &[within("after the fall", BASELINE, ("baseline/all", "mb_per_s_after"), "close to 0.1 MB/s", (0.08, 0.13))],
        "Only if steps of migration keep their period of 15 ms while the host waits for them, which the paper does not say; unpaced it is several times faster (`unpaced`).",
    ),
    claim(
        "figure 10",
        "With background migration throughput is that of SLC blocks until 94 % are written.",
        &[
            within(
                "rate",
                BACKGROUND,
                ("bm/all", "mb_per_s_before"),
                "that of SLC (3.02 MB/s in table 6)",
                (3.02 * (1.0 - NEAR), 3.02 * (1.0 + NEAR)),
            ),
            near("falls at", BACKGROUND, "bm/all", "falls_at_percent"),
        ],
        "",
    ),
    claim(
        "figure 10",
        "The Idle load leaves 93.6 % of the time idle.",
        &[within("", BACKGROUND, ("bm/all", "idle_percent"), "93.6 %", (92.1, 95.1))],
        "To 1.5 points. What is not idle is 4 MiB in 25 s at the rate of SLC blocks.",
    ),
    claim(
        "figure 11",
        "Background migration is ahead of dynamic allocation until 67 % are written.",
        &[as_printed("", BUSY, "bm/all", "crossover_percent", 6.25, 0.0)],
        "To a burst, 6.25 points.",
    ),
    claim(
        "figure 11",
        "Dynamic allocation lowers alpha from 1 to 0.5.",
        &[
            within("first burst", BUSY, ("da/at/6.2%", "alpha"), "1", (1.0, 1.0)),
            near("settled", BUSY, "da/all", "alpha_settled"),
        ],
        "",
    ),
    claim(
        "figure 11",
        "Dynamic allocation has a stable throughput as far as 92 %.",
        &[within("", BUSY, ("da/all", "mb_per_s_to_92"), "stable", (2.4, 2.6))],
        "The rates of all bursts together; the page of the experiment draws them.",
    ),
    claim(
        "figure 11",
        "Dynamic allocation has a stable throughput whatever is in use.",
        &[within(
            "slowest burst",
            BUSY,
            ("da/all", "mb_per_s_slowest"),
            "stable (taken as the rate of MLC blocks, 2.1)",
            (2.1, ANY),
        )],
        "In the last burst blocks run short, and the host waits for migration. A cap on alpha by the free blocks, which nandu has and the paper has not, keeps 2.1 MiB/s to the end (`paper/flexfs-e10`).",
    ),
    claim(
        "figure 12",
        "Dynamic allocation writes the Locality load with 2.45 MB/s, and with locality with 2.66 MB/s.",
        &[near("without", LOCALITY, "da/all", RATE), near("with locality", LOCALITY, "la/all", RATE)],
        "",
    ),
    claim(
        "figure 12",
        "Locality gains throughput.",
        &[over("with over without", LOCALITY, (("la/all", RATE), ("da/all", RATE)), "1.086", (MORE, ANY))],
        "",
    ),
    claim(
        "figure 12",
        "Locality gains 7.9 %.",
        &[within("", LOCALITY, ("la/all", "gain_percent"), "7.9 %", (7.9 * (1.0 - NEAR), 7.9 * (1.0 + NEAR)))],
        "The paper's 7.9 % are of the larger number; 2.66 over 2.45 are 8.6 %. Either rate comes out within 5 %, and their quotient is smaller.",
    ),
    claim(
        "figure 12",
        "With locality alpha rises to 0.7.",
        &[as_printed("", LOCALITY, "la/all", "alpha_last", 0.05, 0.0)],
        "It comes to rest where the idle time that its own bursts leave suffices, just below what rounds to 0.7.",
    ),
    undecided(
        "figure 13",
        "Without migration one request in ten takes more than 2 ms, because of metadata.",
        &[within(
            "without migration, 90th percentile",
            RESPONSE,
            ("opt/all", "response_us_p90"),
            "2,000 us",
            (2000.0, ANY),
        )],
        "The volume has no metadata: its map is in memory. What the paper's metadata was is not told.",
    ),
    claim(
        "figure 13",
        "With a tenth of the idle time in use about one request in ten waits.",
        &[as_printed("", RESPONSE, "u10/all", "delayed_percent", 2.0, 0.0)],
        "To 2 points.",
    ),
    claim(
        "figure 13",
        "With half of the idle time or all of it in use responses are much worse.",
        &[
            over(
                "delayed, half over a tenth",
                RESPONSE,
                (("u50/all", "delayed_percent"), ("u10/all", "delayed_percent")),
                "much worse (taken as three times)",
                (3.0, ANY),
            ),
            over(
                "delayed, all over a tenth",
                RESPONSE,
                (("u100/all", "delayed_percent"), ("u10/all", "delayed_percent")),
                "much worse (taken as three times)",
                (3.0, ANY),
            ),
        ],
        "",
    ),
    claim(
        "section 4.1.1",
        "No request waits longer than a page takes to be moved, about 1,403 us.",
        &[within(
            "longest response of 1,286 us and a wait",
            RESPONSE,
            ("u10/all", "response_us_most"),
            "2,689 us",
            (0.0, 2689.0),
        )],
        "The number is a mean: a step that programs an MSB page takes 2,066 us.",
    ),
    claim(
        "figure 14",
        "Delta is 1 in the first three windows.",
        &[
            exact("window 0", BUDGET, "with/window/0", DELTA),
            exact("window 1", BUDGET, "with/window/1", DELTA),
            exact("window 2", BUDGET, "with/window/2", DELTA),
        ],
        "",
    ),
    claim(
        "figure 14",
        "Delta is below 1 in the first window of 80 MB.",
        &[within("window 3", BUDGET, ("with/window/3", DELTA), "below 1", (0.0, 0.999_999))],
        "What a window writes is predicted by the mean of the last three (the paper's section 4.2.3), which are of 40 MB: it is the second window of 80 MB that is limited first.",
    ),
    claim(
        "figure 14",
        "Delta is below 1 in the second window of 80 MB.",
        &[within("window 4", BUDGET, ("with/window/4", DELTA), "below 1", (0.0, 0.999_999))],
        "",
    ),
    claim(
        "figure 14",
        "After the small windows delta rises again.",
        &[
            over(
                "window 6 over window 5",
                BUDGET,
                (("with/window/6", DELTA), ("with/window/5", DELTA)),
                "rises",
                (MORE, ANY),
            ),
            within("window 7", BUDGET, ("with/window/7", DELTA), "rises", (0.95, 1.0)),
        ],
        "",
    ),
    claim(
        "figure 14",
        "About 1.2 GB are written to flash in all, as promised.",
        &[
            near("wear", BUDGET, "with/all", "wear_mb"),
            within("no more than promised", BUDGET, ("with/all", "wear_mb"), "1,200 MB", (0.0, 1200.0)),
        ],
        "",
    ),
    claim(
        "table 4",
        "Blocks are erased 9.23 times on average with management of wear, and 10.73 times without.",
        &[near("with", EVENNESS, "with/all", "erases_mean"), near("without", EVENNESS, "without/all", "erases_mean")],
        "",
    ),
    claim(
        "table 4",
        "With management of wear the deviation is 1.20 or less.",
        &[within("", EVENNESS, ("with/all", "erases_deviation"), "1.20", (0.0, 1.2))],
        "",
    ),
    undecided(
        "table 4",
        "Without management of wear the deviation is 2.43.",
        &[near("", EVENNESS, "without/all", "erases_deviation")],
        "It depends on which free block is opened when levelling is off, which the paper does not say; here any, by chance.",
    ),
    claim(
        "figure 15",
        "With management of wear no block is erased more than 10 times.",
        &[within("most", EVENNESS, ("with/all", "erases_most"), "10", (0.0, 10.0))],
        "The budget is of all blocks together. Some blocks are erased once more than the mean allows.",
    ),
    claim(
        "figure 15",
        "With management of wear erases are spread more evenly.",
        &[over(
            "deviation, with over without",
            EVENNESS,
            (("with/all", "erases_deviation"), ("without/all", "erases_deviation")),
            "0.49",
            (0.0, 0.999_999),
        )],
        "Levelling was off without it, in the paper as here.",
    ),
    undecided("table 6", "Response of a read: 34, 37 and 36 us (SLC alone, FlexFS, JFFS2).", &[], NO_CACHE),
    claim(
        "table 6",
        "Response of a write: 334, 345 and 473 us (SLC alone, FlexFS, JFFS2).",
        &[
            near("SLC alone", MOBILE, "slc/all", "write_us"),
            near("FlexFS", MOBILE, "flexfs/all", "write_us"),
            near("JFFS2", MOBILE, "mlc/all", "write_us"),
        ],
        "On a load that is made up after what the paper tells of its recording. JFFS2 is the same volume with MLC blocks alone.",
    ),
    claim(
        "table 6",
        "Throughput of writes: 3.02, 2.93 and 2.12 MB/s.",
        &[
            near("SLC alone", MOBILE, "slc/all", RATE),
            near("FlexFS", MOBILE, "flexfs/all", RATE),
            near("JFFS2", MOBILE, "mlc/all", RATE),
        ],
        "As above; the rate of the MP3 files.",
    ),
    claim(
        "section 5.2.2",
        "Writes of FlexFS respond 28 % sooner than those of JFFS2.",
        &[over(
            "FlexFS over JFFS2",
            MOBILE,
            (("flexfs/all", "write_us"), ("mlc/all", "write_us")),
            "0.72",
            (0.72 * (1.0 - NEAR), 0.72 * (1.0 + NEAR)),
        )],
        "",
    ),
    claim(
        "section 5.2.2",
        "The throughput of FlexFS is 28 % higher than that of JFFS2.",
        &[over(
            "FlexFS over JFFS2",
            MOBILE,
            (("flexfs/all", RATE), ("mlc/all", RATE)),
            "1.28",
            (1.28 * (1.0 - NEAR), 1.28 * (1.0 + NEAR)),
        )],
        "The paper's own 2.93 over 2.12 are 38 % more; 28 % are of the larger number.",
    ),
    claim(
        "section 5.2.2",
        "Writes of FlexFS are nearly as good as those of SLC blocks alone: 3.2 % slower, with 3.4 % less throughput.",
        &[
            over(
                "response",
                MOBILE,
                (("flexfs/all", "write_us"), ("slc/all", "write_us")),
                "1.032",
                (1.0, 1.032 * (1.0 + NEAR)),
            ),
            over("throughput", MOBILE, (("flexfs/all", RATE), ("slc/all", RATE)), "0.966", (0.966 * (1.0 - NEAR), 1.0)),
        ],
        "",
    ),
    undecided("section 7", "FlexFS has 90 % of the read performance of SLC blocks alone.", &[], NO_CACHE),
    claim(
        "figure 16",
        "The MP3 files all go to SLC blocks, since idle time is foreseen.",
        &[within(
            "rate of the MP3 files",
            MOBILE,
            ("flexfs/all", RATE),
            "that of SLC (3.02 MB/s)",
            (3.02 * (1.0 - NEAR), 3.02 * (1.0 + NEAR)),
        )],
        "",
    ),
    claim(
        "figure 16",
        "From about 1,200 s on delta is below 1.",
        &[
            within("1,170 s", MOBILE, ("flexfs/at/1170", DELTA), "1", (1.0, 1.0)),
            within("1,260 s", MOBILE, ("flexfs/at/1260", DELTA), "below 1", (0.0, 0.999_999)),
        ],
        "The MP3 files and some of the pictures have taken the wear of their window.",
    ),
    undecided(
        "figure 16",
        "Delta falls to 0.5.",
        &[within("1,260 s", MOBILE, ("flexfs/at/1260", DELTA), "0.5", (0.5 * (1.0 - NEAR), 0.5 * (1.0 + NEAR)))],
        "The number follows from how much was written before. The recording is not published, and the load is made up.",
    ),
    undecided(
        "section 5.2.2",
        "A phone is idle for 89 % of the time.",
        &[],
        "The recording is not published. The load is made up to be idle for as long.",
    ),
    undecided(
        "section 5.2.2",
        "With 16 GB and three years the budget is 146 GB a day.",
        &[],
        "Arithmetic of the paper's equation 5, and right: 16 GB x 10,000 / 1,095 days.",
    ),
];
