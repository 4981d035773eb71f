//! Chips: geometry and times of real parts, of the papers' devices, and of two toys for exhaustive tests.

use nandu_nand::{CellMode, CopyRule, Ecc, Geometry, PageGroup, Pairing, ProgramOrder, TearScope};

/// How bytes and commands reach the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Picoseconds for one byte in either direction.
    pub byte_ps: u32,
    /// Nanoseconds for the command, address and status cycles of one operation.
    pub command_ns: u32,
}

impl Bus {
    /// The times of the chip contain the transfer already, as the papers state theirs.
    pub const INCLUDED: Bus = Bus { byte_ps: 0, command_ns: 0 };

    /// A serial bus with 1, 2, 4 or 8 data lines. Commands and addresses go over one line, and an operation needs about
    /// 88 clocks of them: page read or program execute (32), one status poll (24), and cache read, or write enable and
    /// program load (32).
    pub const fn spi(lanes: u32, clock_mhz: u32) -> Bus {
        Bus { byte_ps: 8_000_000 / lanes / clock_mhz, command_ns: 88_000 / clock_mhz }
    }

    /// A parallel bus of 8 or 16 lines. An operation needs two command cycles, five address cycles and one status cycle.
    pub const fn parallel(width_bits: u32, cycle_ns: u32) -> Bus {
        Bus { byte_ps: cycle_ns * 8000 / width_bits, command_ns: cycle_ns * 8 }
    }

    /// Whether the chip's times contain the transfer.
    pub const fn is_included(&self) -> bool {
        self.byte_ps == 0 && self.command_ns == 0
    }

    /// Nanoseconds to move this many bytes and the commands around them.
    pub const fn transfer_ns(&self, byte_count: u64) -> u64 {
        self.command_ns as u64 + byte_count * self.byte_ps as u64 / 1000
    }
}

/// Typical times of a chip. A chip with one bit a cell has the same time for LSB and MSB pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Array read of an LSB page, nanoseconds.
    pub read_lsb_ns: u32,
    /// Array read of an MSB page, nanoseconds.
    pub read_msb_ns: u32,
    /// Program of an LSB page, nanoseconds; of every page in SLC mode.
    pub program_lsb_ns: u32,
    /// Program of an MSB page, nanoseconds.
    pub program_msb_ns: u32,
    /// Erase of a block, nanoseconds.
    pub erase_ns: u32,
    /// The bus; [`Bus::INCLUDED`] where the times above contain the transfer.
    pub bus: Bus,
}

impl Timing {
    /// Times of a chip with one bit a cell.
    pub const fn slc(read_ns: u32, program_ns: u32, erase_ns: u32, bus: Bus) -> Timing {
        Timing {
            read_lsb_ns: read_ns,
            read_msb_ns: read_ns,
            program_lsb_ns: program_ns,
            program_msb_ns: program_ns,
            erase_ns,
            bus,
        }
    }

    /// Array read of a page of this group, nanoseconds.
    pub const fn read_ns(&self, group: PageGroup) -> u32 {
        match group {
            PageGroup::Lsb => self.read_lsb_ns,
            PageGroup::Msb => self.read_msb_ns,
        }
    }

    /// Program of a page of this group, nanoseconds.
    pub const fn program_ns(&self, group: PageGroup) -> u32 {
        match group {
            PageGroup::Lsb => self.program_lsb_ns,
            PageGroup::Msb => self.program_msb_ns,
        }
    }

    /// Whether the times contain the transfer of the bytes.
    pub const fn transfer_included(&self) -> bool {
        self.bus.is_included()
    }
}

/// A kind of chip: what [`Sim`](crate::Sim) simulates.
///
/// The presets are typical values; a field may be changed before a simulator is made of it:
///
/// ```
/// use nandu_sim::Chip;
///
/// let chip = Chip { timing: Chip::W25N02KV.timing, ..Chip::W25N01GV.with_blocks(64) };
/// assert_eq!(chip.geometry.block_count, 64);
/// chip.geometry.validate().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Short lower-case name, by which [`Chip::preset`] finds it.
    pub name: &'static str,
    /// Where the numbers come from, in one line.
    pub source: &'static str,
    /// Shape and abilities.
    pub geometry: Geometry,
    /// Times.
    pub timing: Timing,
    /// Whether the vendor offers a way to read an LSB page that a cut of its MSB partner destroyed.
    pub lsb_recovery: bool,
}

/// What most presets with one bit a cell have in common.
const SLC_2K: Geometry = Geometry {
    page_size: 2048,
    spare_size: 64,
    tag_size: 0,
    pages_per_block: 64,
    block_count: 1024,
    pairing: Pairing::None,
    order: ProgramOrder::Ascending,
    programs_per_page: 4,
    program_unit: 512,
    tear: TearScope::Page,
    ecc: Ecc { codeword_size: 512, correctable_bits: 1 },
    endurance: 100_000,
    bad_block_max: 20,
    plane_count: 1,
    die_count: 1,
    copies: CopyRule::Never,
};

/// What the presets with two bits a cell have in common.
const MLC_4K: Geometry = Geometry {
    page_size: 4096,
    spare_size: 128,
    tag_size: 0,
    pages_per_block: 128,
    block_count: 128,
    pairing: Pairing::SchemeA,
    order: ProgramOrder::Ascending,
    programs_per_page: 1,
    program_unit: 4096,
    tear: TearScope::Pair,
    ecc: Ecc { codeword_size: 512, correctable_bits: 8 },
    endurance: 10_000,
    bad_block_max: 2,
    plane_count: 1,
    die_count: 1,
    copies: CopyRule::Never,
};

impl Chip {
    /// The MLC chip of the mu-Tree paper, 64 MiB. Its times do not tell LSB pages from MSB pages.
    pub const PAPER_MLC: Chip = Chip {
        name: "paper-mlc",
        source: "mu-Tree paper, table 1 (times with transfer); pairing and ECC assumed",
        geometry: MLC_4K,
        timing: Timing::slc(165_600, 905_800, 1_500_000, Bus::INCLUDED),
        lsb_recovery: false,
    };

    /// The SLC chip of the mu-Tree paper; 128 MiB unless told otherwise.
    pub const PAPER_SLC: Chip = Chip {
        name: "paper-slc",
        source: "mu-Tree paper, table 1 (times with transfer); block count and ECC assumed",
        geometry: SLC_2K,
        timing: Timing::slc(77_800, 252_800, 1_500_000, Bus::INCLUDED),
        lsb_recovery: false,
    };

    /// The chip of the GRR paper, 4 GiB: eight sectors of 512 bytes are programmed one by one, in any order.
    pub const PAPER_GRR: Chip = Chip {
        name: "paper-grr",
        source: "GRR paper (times with transfer); page size, block size and ECC assumed",
        geometry: Geometry {
            pages_per_block: 32,
            block_count: 32_768,
            pairing: Pairing::None,
            order: ProgramOrder::Any,
            programs_per_page: 8,
            program_unit: 512,
            tear: TearScope::Page,
            ecc: Ecc { codeword_size: 512, correctable_bits: 1 },
            endurance: 100_000,
            bad_block_max: 655,
            ..MLC_4K
        },
        timing: Timing::slc(80_000, 200_000, 1_500_000, Bus::INCLUDED),
        lsb_recovery: false,
    };

    /// The chip of the FlexFS paper, 64 MiB as MLC and 32 MiB as SLC. The paper gives LSB-only and mean times; the MSB
    /// times are twice the mean less the LSB time.
    pub const PAPER_FLEX: Chip = Chip {
        name: "paper-flex",
        source: "FlexFS paper, table 1 (times with transfer); MSB = 2 * mean - LSB; spare, pairing and ECC assumed",
        geometry: MLC_4K,
        timing: Timing {
            read_lsb_ns: 409_000,
            read_msb_ns: 397_000,
            program_lsb_ns: 431_000,
            program_msb_ns: 1_557_000,
            erase_ns: 872_000,
            bus: Bus::INCLUDED,
        },
        lsb_recovery: false,
    };

    /// The OneNAND of the DFFS paper, 256 MiB: read 108 MB/s, program 9.3 MB/s, erase 64 MB/s (millions of bytes). How
    /// many partial programs it takes is not stated, so it takes none.
    pub const PAPER_ONENAND: Chip = Chip {
        name: "paper-onenand",
        source: "DFFS paper (rates with transfer, turned into times); partial programs and ECC assumed",
        geometry: Geometry { block_count: 2048, programs_per_page: 1, program_unit: 2048, bad_block_max: 40, ..SLC_2K },
        timing: Timing::slc(18_963, 220_215, 2_048_000, Bus::INCLUDED),
        lsb_recovery: false,
    };

    /// Winbond W25N01GV, 128 MiB, SPI x4 at 104 MHz: the default chip. Corrects a single bit in 512 bytes.
    pub const W25N01GV: Chip = Chip {
        name: "w25n01gv",
        source: "W25N01GV of the part table of nandu-spi; data sheet, typical times; SPI x4 at 104 MHz",
        geometry: Geometry { tag_size: 16, endurance: 65_000, copies: CopyRule::Die, ..SLC_2K },
        timing: Timing::slc(45_000, 250_000, 2_000_000, Bus::spi(4, 104)),
        lsb_recovery: false,
    };

    /// Winbond W25N02KV, 256 MiB, SPI x4 at 104 MHz.
    pub const W25N02KV: Chip = Chip {
        name: "w25n02kv",
        source: "W25N02KV of the part table of nandu-spi; data sheet, typical times; SPI x4 at 104 MHz",
        geometry: Geometry {
            spare_size: 128,
            block_count: 2048,
            programs_per_page: 1,
            program_unit: 2048,
            ecc: Ecc { codeword_size: 512, correctable_bits: 8 },
            bad_block_max: 40,
            tag_size: 48,
            endurance: 65_000,
            ..SLC_2K
        },
        timing: Timing::slc(45_000, 250_000, 2_000_000, Bus::spi(4, 104)),
        lsb_recovery: false,
    };

    /// GigaDevice GD5F2GQ5, 256 MiB, SPI x4 at 104 MHz.
    pub const GD5F2GQ5: Chip = Chip {
        name: "gd5f2gq5",
        source: "GD5F2GQ5UE of the part table of nandu-spi; data sheet, typical times; SPI x4 at 104 MHz",
        geometry: Geometry {
            spare_size: 128,
            block_count: 2048,
            programs_per_page: 1,
            program_unit: 2048,
            ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
            bad_block_max: 40,
            tag_size: 48,
            endurance: 50_000,
            copies: CopyRule::Parity,
            ..SLC_2K
        },
        timing: Timing::slc(80_000, 400_000, 3_000_000, Bus::spi(4, 104)),
        lsb_recovery: false,
    };

    /// Micron MT29F4G01, 512 MiB, SPI x4 at 104 MHz.
    pub const MT29F4G01: Chip = Chip {
        name: "mt29f4g01",
        source: "MT29F4G01ABAFD of the part table of nandu-spi; data sheet, typical times; SPI x4 at 104 MHz",
        geometry: Geometry {
            page_size: 4096,
            spare_size: 256,
            block_count: 2048,
            programs_per_page: 1,
            program_unit: 4096,
            ecc: Ecc { codeword_size: 512, correctable_bits: 8 },
            bad_block_max: 40,
            tag_size: 64,
            endurance: 65_000,
            copies: CopyRule::Die,
            ..SLC_2K
        },
        timing: Timing::slc(115_000, 240_000, 2_000_000, Bus::spi(4, 104)),
        lsb_recovery: false,
    };

    /// A later MLC chip, 2 GiB, 8 lines at 25 ns. Pages are paired at a distance of 4 to 6.
    /// The LSB time is the mean times the ratio of the FlexFS chip, rounded.
    pub const MLC_4K: Chip = Chip {
        name: "mlc-4k",
        source: "typical of MLC parts, no one part; mean program 800 us split into LSB and MSB; 8 bits at 25 ns",
        geometry: Geometry {
            block_count: 4096,
            ecc: Ecc { codeword_size: 1024, correctable_bits: 24 },
            endurance: 5_000,
            bad_block_max: 81,
            copies: CopyRule::Die,
            ..MLC_4K
        },
        timing: Timing {
            read_lsb_ns: 60_000,
            read_msb_ns: 60_000,
            program_lsb_ns: 350_000,
            program_msb_ns: 1_250_000,
            erase_ns: 2_500_000,
            bus: Bus::parallel(8, 25),
        },
        lsb_recovery: false,
    };

    /// A toy of 32 KiB: small enough to try every operation with every tear.
    pub const TINY: Chip = Chip {
        name: "tiny",
        source: "no real part: for exhaustive tests",
        geometry: Geometry {
            page_size: 256,
            spare_size: 8,
            pages_per_block: 8,
            block_count: 16,
            programs_per_page: 1,
            program_unit: 256,
            ecc: Ecc { codeword_size: 256, correctable_bits: 4 },
            endurance: 20,
            bad_block_max: 2,
            ..SLC_2K
        },
        timing: Timing::slc(1_000, 1_000, 1_000, Bus::INCLUDED),
        lsb_recovery: false,
    };

    /// [`Chip::TINY`] with two bits a cell, for exhaustive tests of paired pages.
    pub const TINY_MLC: Chip = Chip {
        name: "tiny-mlc",
        geometry: Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, ..Chip::TINY.geometry },
        timing: Timing { program_msb_ns: 3_000, ..Chip::TINY.timing },
        lsb_recovery: true,
        ..Chip::TINY
    };

    /// Every preset.
    pub const PRESETS: &[Chip] = &[
        Chip::PAPER_MLC,
        Chip::PAPER_SLC,
        Chip::PAPER_GRR,
        Chip::PAPER_FLEX,
        Chip::PAPER_ONENAND,
        Chip::W25N01GV,
        Chip::W25N02KV,
        Chip::GD5F2GQ5,
        Chip::MT29F4G01,
        Chip::MLC_4K,
        Chip::TINY,
        Chip::TINY_MLC,
    ];

    /// The chip to take when none is named.
    pub const DEFAULT: Chip = Chip::W25N01GV;

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Chip> {
        Chip::PRESETS.iter().copied().find(|chip| chip.name == name)
    }

    /// The same chip with another number of blocks, of which one in fifty, but at least one, may go bad.
    pub const fn with_blocks(mut self, block_count: u32) -> Chip {
        self.geometry.block_count = block_count;
        self.geometry.bad_block_max = if block_count < 50 { 1 } else { block_count / 50 };
        self
    }

    /// The mode that uses all the cells can hold: MLC where pages are paired.
    pub const fn full_mode(&self) -> CellMode {
        if self.geometry.pairing.is_paired() { CellMode::Mlc } else { CellMode::Slc }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_found_by_its_name() {
        for chip in Chip::PRESETS {
            chip.geometry.validate().unwrap();
            assert_eq!(Chip::preset(chip.name), Some(*chip));
            assert!(chip.geometry.bad_block_max > 0 && !chip.source.is_empty());
        }
        assert_eq!(Chip::preset("w25n99"), None);
    }

    #[test]
    fn serial_bus_times_follow_from_lanes_and_clock() {
        // Four lines at 104 MHz move a byte in two clocks: 19.23 ns.
        let quad = Bus::spi(4, 104);
        assert_eq!(quad.byte_ps, 19_230);
        assert_eq!(quad.transfer_ns(2048), 846 + 39_383);
        assert_eq!(Bus::spi(1, 104).byte_ps, 76_923);
        assert_eq!(Bus::parallel(8, 25).transfer_ns(4), 300);
        assert_eq!(Bus::INCLUDED.transfer_ns(1 << 40), 0);
    }

    #[test]
    fn flexfs_msb_times_bring_out_the_papers_means() {
        let timing = Chip::PAPER_FLEX.timing;
        assert_eq!((timing.program_lsb_ns + timing.program_msb_ns) / 2, 994_000);
        assert_eq!((timing.read_lsb_ns + timing.read_msb_ns) / 2, 403_000);
    }
}
