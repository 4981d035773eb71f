//! The table: every row is sound, every part is found by its identity, every code of every status is decoded.

use nandu_nand::GeometryError;
use nandu_spi::EccOutcome::{Clean, Corrected, Uncorrectable};
use nandu_spi::{
    DieSelect, EccOutcome, Identity, MarkPages, MoreStatus, PARTS, Part, PartError, PlaneSelect, SOURCES, SpareRange,
    StatusScheme,
};

fn part(name: &str) -> &'static Part {
    let found = Part::by_name(name, PARTS);
    assert!(found.is_some(), "{name} is not in the table");
    found.unwrap_or(&PARTS[0])
}

fn answer(part: &Part) -> [u8; 5] {
    let mut bytes = [0; 5];
    bytes[..part.id.bytes.len()].copy_from_slice(part.id.bytes);
    bytes
}

#[test]
fn every_row_is_sound_and_names_its_sources() {
    assert!(PARTS.len() >= 25);
    for part in PARTS {
        part.validate().unwrap_or_else(|error| panic!("{}: {error}", part.name));
        assert!(!part.maker.is_empty() && !part.sources.is_empty(), "{}", part.name);
        let times = part.times;
        assert!(times.read_us * 4 < times.read_limit_us, "{}", part.name);
        assert!(times.program_us * 4 < times.program_limit_us, "{}", part.name);
        assert!(times.erase_us * 4 < times.erase_limit_us, "{}", part.name);
        // Not a mark and not a byte that a factory may have written beside it.
        assert!(part.protected.unwrap_or_default().iter().all(|range| range.offset >= 2), "{}", part.name);
    }
}

#[test]
fn rows_that_do_not_fit_themselves_are_refused() {
    let sound = *part("MT29F2G01ABAGD");
    let ranges = |ranges: &'static [SpareRange]| Part { protected: Some(ranges), ..sound };
    let flawed = [
        (Part { page_size: 2000, ..sound }, PartError::Geometry(GeometryError::PageSize(2000))),
        (
            Part { blocks_per_die: u32::MAX, die_count: 2, ..sound },
            PartError::Geometry(GeometryError::BlockCount(u32::MAX)),
        ),
        (Part { id: Identity { bytes: &[0x2c], ..sound.id }, ..sound }, PartError::Identity),
        (Part { id: Identity { bytes: &[0; 6], ..sound.id }, ..sound }, PartError::Identity),
        (ranges(&[SpareRange { offset: 3, size: 4 }]), PartError::Protected),
        (ranges(&[SpareRange { offset: 8, size: 4 }, SpareRange { offset: 11, size: 4 }]), PartError::Protected),
        (ranges(&[SpareRange { offset: 120, size: 9 }]), PartError::Protected),
        (Part { die_count: 2, ..sound }, PartError::Dies),
        (Part { die_select: DieSelect::Command, ..sound }, PartError::Dies),
        (Part { plane_count: 1, ..sound }, PartError::Planes),
        (Part { plane_select: PlaneSelect::ColumnBit(11), ..sound }, PartError::Planes),
        (Part { plane_select: PlaneSelect::ColumnBit(16), ..sound }, PartError::Planes),
        (Part { page_size: 1 << 16, ..sound }, PartError::Address),
        (Part { blocks_per_die: 1 << 19, ..sound }, PartError::Address),
    ];
    assert_eq!(sound.validate(), Ok(()));
    for (part, error) in flawed {
        assert_eq!(part.validate(), Err(error), "{error}");
    }
}

#[test]
fn sources_are_known_and_every_part_has_two() {
    for part in PARTS {
        let mut letters = Vec::new();
        for source in part.sources {
            let (names, text) = source.split_once(": ").unwrap_or_default();
            assert!(!text.is_empty(), "{}: {source}", part.name);
            letters.extend(names.split(", ").map(str::to_owned));
        }
        for letter in &letters {
            let is_known = SOURCES.iter().any(|(known, _)| known.to_string() == *letter);
            assert!(is_known, "{}: {letter}", part.name);
        }
        letters.sort();
        letters.dedup();
        assert!(letters.len() >= 2, "{}", part.name);
    }
}

#[test]
fn every_part_is_found_by_its_own_identity_and_by_no_other() {
    for part in PARTS {
        assert_eq!(Part::identify(&answer(part), PARTS).map(|found| found.name), Some(part.name));
        assert_eq!(PARTS.iter().filter(|other| other.name == part.name).count(), 1);
    }
}

#[test]
fn what_nobody_knows_is_not_found() {
    for bytes in [[0; 5], [0xff; 5], [0xef, 0xaa, 0x24, 0, 0], [0xc2, 0x26, 0x04, 0, 0], [0xc8, 0x01, 0x7f, 0x7f, 0]] {
        assert_eq!(Part::identify(&bytes, PARTS), None, "{bytes:02x?}");
    }
}

#[test]
fn continuation_codes_mean_another_maker() {
    // ESMT's F50D2G41KA answers as GigaDevice's GD5F1GQ5UE does, but for what comes behind; it is twice as large.
    assert_eq!(Part::identify(&[0xc8, 0x51, 0x7f, 0x7f, 0x7f], PARTS), None);
    assert_eq!(Part::identify(&[0xc8, 0x51, 0xc8, 0x51, 0xc8], PARTS), Some(part("GD5F1GQ5UE")));
}

#[test]
fn geometries_are_those_of_the_sheets() {
    let capacity = |name: &str| part(name).geometry().capacity() >> 20;
    assert_eq!(capacity("W25N512GV"), 64);
    assert_eq!(capacity("W25N01GV"), 128);
    assert_eq!(capacity("W25M02GV"), 256);
    assert_eq!(capacity("GD5F4GQ6UE"), 512);
    assert_eq!(capacity("MT29F4G01ABAFD"), 512);
    assert_eq!(capacity("MX35LF4GE4AD"), 512);
    for part in PARTS {
        let blocks = part.block_count();
        assert!(part.bad_block_max >= blocks / 104 && part.bad_block_max <= blocks / 50, "{}", part.name);
        assert!(blocks.is_power_of_two() && part.pages_per_block == 64, "{}", part.name);
    }
}

#[test]
fn protected_bytes_are_as_many_as_the_sources_say() {
    let sizes = [
        ("W25N512GV", 16),
        ("W25N01GV", 16),
        ("W25N01JW", 0),
        ("W25M02GV", 16),
        ("W25N01KV", 0),
        ("W25N02KV", 48),
        ("W25N04KV", 16),
        ("GD5F1GQ4UE", 32),
        ("GD5F1GQ5UE", 48),
        ("GD5F2GQ5UE", 48),
        ("GD5F4GQ6UE", 16),
        ("GD5F1GM7UE", 48),
        ("GD5F4GM8UE", 0),
        ("MT29F1G01ABAFD", 32),
        ("MT29F2G01ABAGD", 32),
        ("MT29F4G01ABAFD", 64),
        ("MX35LF1GE4AB", 48),
        ("MX35LF2GE4AD", 16),
        ("MX35LF4GE4AD", 16),
        ("TC58CVG0S3HRAIJ", 8),
        ("TC58CVG2S0HRAIJ", 16),
        ("F50L1G41LB", 16),
        ("F35SQA001G", 48),
        ("XT26G01A", 16),
        ("XT26G01D", 0),
        ("DS35Q1GA", 16),
    ];
    assert_eq!(sizes.len(), PARTS.len());
    for (name, size) in sizes {
        assert_eq!(part(name).tag_size(), size, "{name}");
    }
}

#[test]
fn marks_stand_where_the_sources_say() {
    for name in ["MX35LF1GE4AB", "MX35LF2GE4AD", "F50L1G41LB", "DS35Q1GA"] {
        assert_eq!(part(name).marks, MarkPages::FirstTwo, "{name}");
    }
    for name in ["W25N01GV", "GD5F1GQ4UE", "GD5F1GQ5UE", "MT29F1G01ABAFD"] {
        assert_eq!(part(name).marks, MarkPages::First, "{name}");
    }
}

const fn exactly(bits: u8) -> EccOutcome {
    Corrected { min: bits, max: bits }
}

const fn between(min: u8, max: u8) -> EccOutcome {
    Corrected { min, max }
}

/// A status, what was read besides, what it means. What is not in the list is uncorrectable.
type Codes = &'static [(u8, u8, EccOutcome)];

const ONE_BIT: Codes = &[(0x00, 0, Clean), (0x10, 0, exactly(1))];
const DOSILICON: Codes = &[(0x00, 0, Clean), (0x10, 0, between(1, 4))];
const COUNT_4: Codes = &[
    (0x00, 0, Clean),
    (0x10, 0x10, exactly(1)),
    (0x10, 0x20, exactly(2)),
    (0x10, 0x30, exactly(3)),
    (0x30, 0x40, exactly(4)),
    // A count that cannot be.
    (0x10, 0x00, between(1, 4)),
    (0x30, 0xf0, between(1, 4)),
];
const COUNT_8: Codes = &[
    (0x00, 0, Clean),
    (0x10, 0x10, exactly(1)),
    (0x10, 0x40, exactly(4)),
    (0x30, 0x50, exactly(5)),
    (0x30, 0x87, exactly(8)),
    (0x10, 0x0f, between(1, 8)),
    (0x30, 0x90, between(1, 8)),
];
const GIGADEVICE_8: Codes = &[
    (0x00, 0, Clean),
    (0x10, 0x00, between(1, 4)),
    (0x10, 0x10, exactly(5)),
    (0x10, 0x20, exactly(6)),
    (0x10, 0x30, exactly(7)),
    (0x30, 0x00, exactly(8)),
];
const GIGADEVICE_4: Codes = &[
    (0x00, 0, Clean),
    (0x10, 0x00, exactly(1)),
    (0x10, 0x10, exactly(2)),
    (0x10, 0x20, exactly(3)),
    (0x10, 0x30, exactly(4)),
];
const MICRON: Codes = &[(0x00, 0, Clean), (0x10, 0, between(1, 3)), (0x30, 0, between(4, 6)), (0x50, 0, between(7, 8))];
const MACRONIX_4: Codes =
    &[(0x00, 0, Clean), (0x10, 0x01, exactly(1)), (0x10, 0x34, exactly(4)), (0x10, 0, between(1, 4))];
const MACRONIX_8: Codes = &[
    (0x00, 0, Clean),
    (0x10, 0x01, exactly(1)),
    (0x10, 0x83, exactly(3)),
    (0x30, 0x08, exactly(8)),
    (0x30, 0x0f, between(1, 8)),
    (0x10, 0x00, between(1, 8)),
];
const XTX_A: Codes = &[
    (0x00, 0, Clean),
    (0x04, 0, exactly(1)),
    (0x08, 0, exactly(2)),
    (0x0c, 0, exactly(3)),
    (0x10, 0, exactly(4)),
    (0x14, 0, exactly(5)),
    (0x18, 0, exactly(6)),
    (0x1c, 0, exactly(7)),
    (0x30, 0, exactly(8)),
];
const XTX_D: Codes = &[
    (0x00, 0, Clean),
    (0x40, 0, Clean),
    (0x80, 0, Clean),
    (0xc0, 0, Clean),
    (0x10, 0, between(1, 4)),
    (0x50, 0, exactly(5)),
    (0x90, 0, exactly(6)),
    (0xd0, 0, exactly(7)),
    (0x30, 0, exactly(8)),
    (0x70, 0, exactly(8)),
    (0xb0, 0, exactly(8)),
    (0xf0, 0, exactly(8)),
];

/// The bits of the status that have to do with error correction, and what the codes mean, for each part.
const STATUS: &[(&str, u8, Codes)] = &[
    ("W25N512GV", 0x30, ONE_BIT),
    ("W25N01GV", 0x30, ONE_BIT),
    ("W25N01JW", 0x30, ONE_BIT),
    ("W25M02GV", 0x30, ONE_BIT),
    ("W25N01KV", 0x30, COUNT_4),
    ("W25N02KV", 0x30, COUNT_8),
    ("W25N04KV", 0x30, COUNT_8),
    ("GD5F1GQ4UE", 0x30, GIGADEVICE_8),
    ("GD5F1GQ5UE", 0x30, GIGADEVICE_4),
    ("GD5F2GQ5UE", 0x30, GIGADEVICE_4),
    ("GD5F4GQ6UE", 0x30, GIGADEVICE_4),
    ("GD5F1GM7UE", 0x30, GIGADEVICE_8),
    ("GD5F4GM8UE", 0x30, GIGADEVICE_8),
    ("MT29F1G01ABAFD", 0x70, MICRON),
    ("MT29F2G01ABAGD", 0x70, MICRON),
    ("MT29F4G01ABAFD", 0x70, MICRON),
    ("MX35LF1GE4AB", 0x30, MACRONIX_4),
    ("MX35LF2GE4AD", 0x30, MACRONIX_8),
    ("MX35LF4GE4AD", 0x30, MACRONIX_8),
    ("TC58CVG0S3HRAIJ", 0x30, COUNT_8),
    ("TC58CVG2S0HRAIJ", 0x30, COUNT_8),
    ("F50L1G41LB", 0x30, ONE_BIT),
    ("F35SQA001G", 0x30, ONE_BIT),
    ("XT26G01A", 0x3c, XTX_A),
    ("XT26G01D", 0xf0, XTX_D),
    ("DS35Q1GA", 0x30, DOSILICON),
];

#[test]
fn every_code_of_every_part_is_decoded() {
    assert_eq!(STATUS.len(), PARTS.len());
    for &(name, mask, codes) in STATUS {
        let part = part(name);
        for &(status, more, expected) in codes {
            // The other bits of the register, but for busy, must not matter.
            for rest in [0, !mask & 0xfe] {
                let found = part.status.decode(status | rest, more, part.ecc_bits);
                assert_eq!(found, expected, "{name}: {status:02x}h, {more:02x}h");
            }
        }
        for status in (0..=0xff).filter(|status| status & mask == *status) {
            if codes.iter().any(|&(known, _, _)| known == status) {
                continue;
            }
            for more in 0..=0xff {
                let found = part.status.decode(status, more, part.ecc_bits);
                assert_eq!(found, Uncorrectable, "{name}: {status:02x}h, {more:02x}h is no code");
            }
        }
        for (status, more) in (0..=0xff_u8).flat_map(|status| (0..=0xff_u8).map(move |more| (status, more))) {
            if let Corrected { min, max } = part.status.decode(status, more, part.ecc_bits) {
                assert!(1 <= min && min <= max && max <= part.ecc_bits, "{name}: {status:02x}h, {more:02x}h");
            }
        }
    }
}

#[test]
fn what_is_read_besides_the_status_is_asked_for() {
    let asked = |name: &str, status: u8| part(name).status.more(status);
    assert_eq!(asked("W25N01GV", 0x10), None);
    assert_eq!(asked("W25N02KV", 0x00), None);
    assert_eq!(asked("W25N02KV", 0x10), Some(MoreStatus::Feature(0x30)));
    assert_eq!(asked("W25N02KV", 0x30), Some(MoreStatus::Feature(0x30)));
    assert_eq!(asked("W25N02KV", 0x20), None);
    assert_eq!(asked("TC58CVG0S3HRAIJ", 0x30), Some(MoreStatus::Feature(0x30)));
    assert_eq!(asked("GD5F1GQ5UE", 0x10), Some(MoreStatus::Feature(0xf0)));
    assert_eq!(asked("GD5F1GQ4UE", 0x30), None);
    assert_eq!(asked("MX35LF1GE4AB", 0x10), Some(MoreStatus::EccStatus));
    assert_eq!(asked("MX35LF1GE4AB", 0x30), None);
    assert_eq!(asked("MX35LF2GE4AD", 0x30), Some(MoreStatus::EccStatus));
    assert_eq!(asked("MT29F1G01ABAFD", 0x10), None);
    assert_eq!(part("XT26G01A").status, StatusScheme::XtxA);
}
