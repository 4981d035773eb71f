//! The table: one row for each part, a file for each maker.
//!
//! Sources go by the letters of [`SOURCES`]. They are compiled with the feature `sources`.
//!
//! Bytes that Linux calls free are not thereby protected. Protected bytes are what two sources say, and where one says more than
//! another, what both do; for R these are the four bytes from each place that its table names for words of its own. What has one source
//! only, or none, is read so that it can cost but not lose: no protected bytes, one program for each page, no copies inside, both pages
//! looked at for marks, 50,000 erases, which is the least that a source names for any part here.

/// The sources of a row, which only a host has use for: six kilobytes of text.
macro_rules! sources {
    ($($text:literal),* $(,)?) => {
        if cfg!(feature = "sources") { &[$($text),*] } else { &[] }
    };
}

mod gigadevice;
mod kioxia;
mod macronix;
mod micron;
mod others;
mod winbond;

use nandu_nand::CopyRule;

use crate::part::{
    ContinuousRead, DieSelect, IdMethod, Identity, MarkPages, Part, PlaneSelect, PowerUp, SpareRange, Times,
};
use crate::status::StatusScheme;

/// What the letters in front of the sources of a row stand for.
pub const SOURCES: &[(char, &str)] = &[
    ('L', "Linux, drivers/mtd/nand/spi/<maker>.c"),
    ('A', "Allwinner's driver for SPI NAND, physic/id.c"),
    ('R', "Rockchip's, drivers/rkflash/sfc_nand.c"),
    ('U', "the programmer ufprog, flash/nand/spi-nand/vendor-<maker>.c"),
    ('E', "Espressif's component spi_nand_flash, src/devices/ and ECC_DECODE_CHECKLIST.md"),
    ('M', "a patch on the Linux mailing list for Micron's spare area"),
    ('D', "a public page on Winbond's parts"),
    ('S', "the data sheet of the part, as public pages and drivers quote it"),
];

/// Every part known here.
pub const PARTS: &[Part] = &[
    winbond::W25N512GV,
    winbond::W25N01GV,
    winbond::W25N01JW,
    winbond::W25M02GV,
    winbond::W25N01KV,
    winbond::W25N02KV,
    winbond::W25N04KV,
    gigadevice::GD5F1GQ4UE,
    gigadevice::GD5F1GQ5UE,
    gigadevice::GD5F2GQ5UE,
    gigadevice::GD5F4GQ6UE,
    gigadevice::GD5F1GM7UE,
    gigadevice::GD5F4GM8UE,
    micron::MT29F1G01ABAFD,
    micron::MT29F2G01ABAGD,
    micron::MT29F4G01ABAFD,
    macronix::MX35LF1GE4AB,
    macronix::MX35LF2GE4AD,
    macronix::MX35LF4GE4AD,
    kioxia::TC58CVG0S3HRAIJ,
    kioxia::TC58CVG2S0HRAIJ,
    others::F50L1G41LB,
    others::F35SQA001G,
    others::XT26G01A,
    others::XT26G01D,
    others::DS35Q1GA,
];

/// What most parts have in common. Each row that takes it over says what it changes; the readings in it are the safe ones.
const COMMON: Part = Part {
    name: "",
    maker: "",
    id: Identity { method: IdMethod::Dummy, bytes: &[] },
    page_size: 2048,
    spare_size: 64,
    pages_per_block: 64,
    blocks_per_die: 1024,
    plane_count: 1,
    plane_select: PlaneSelect::Row,
    die_count: 1,
    die_select: DieSelect::Single,
    ecc_bits: 1,
    status: StatusScheme::TwoBit,
    marks: MarkPages::FirstTwo,
    protected: None,
    programs_per_page: 1,
    bad_block_max: 20,
    endurance: 50_000,
    power_up: PowerUp { locked: true, ecc: true, continuous_read: false },
    continuous_read: ContinuousRead::None,
    quad_bit: true,
    copy: CopyRule::Never,
    parameter_row: Some(1),
    times: Times::usual(50, 400, 4_000),
    power_down: None,
    sources: &[],
};

/// Four ranges, one for each sixteen bytes of the spare area.
const fn quarters(offset: u16, size: u16) -> [SpareRange; 4] {
    let mut ranges = [SpareRange { offset, size }; 4];
    let mut index = 1;
    while index < ranges.len() {
        ranges[index].offset = offset + 16 * index as u16;
        index += 1;
    }
    ranges
}

/// Bytes 4 to 11 of the first and the second sixteen.
const TWO_4_TO_11: &[SpareRange] = &[SpareRange { offset: 4, size: 8 }, SpareRange { offset: 20, size: 8 }];
/// Bytes 4 to 7 of each sixteen.
const QUARTERS_4_TO_7: &[SpareRange] = &quarters(4, 4);
/// Bytes 4 to 11 of each sixteen.
const QUARTERS_4_TO_11: &[SpareRange] = &quarters(4, 8);
/// Bytes 4 to 15 of each sixteen.
const QUARTERS_4_TO_15: &[SpareRange] = &quarters(4, 12);
