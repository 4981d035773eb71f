//! What the kernel takes and gives at `/dev/mtdN`: `include/uapi/mtd/mtd-abi.h` of Linux.
//!
//! Numbers are in the machine's byte order, as everything at that door.

use rustix::ioctl::{Opcode, opcode};

/// The group of all of these calls.
const GROUP: u8 = b'M';

/// `MEMGETINFO`: type and shape.
pub(crate) const GET_INFO: Opcode = opcode::read::<InfoUser>(GROUP, 1);
/// `MEMGETBADBLOCK`: whether the block at an offset is bad, as the call's result.
pub(crate) const GET_BAD_BLOCK: Opcode = opcode::write::<i64>(GROUP, 11);
/// `MEMSETBADBLOCK`: marks the block at an offset.
pub(crate) const SET_BAD_BLOCK: Opcode = opcode::write::<i64>(GROUP, 12);
/// `ECCGETSTATS`: what error correction has done since the device came up. Linux 2.6.18.
pub(crate) const GET_ECC_STATS: Opcode = opcode::read::<EccStatsUser>(GROUP, 18);
/// `MEMERASE64`: erases a range. Linux 2.6.31.
pub(crate) const ERASE: Opcode = opcode::write::<EraseUser>(GROUP, 20);
/// `MEMREADOOB64`: the spare area of a page as it lies there. Linux 2.6.31.
pub(crate) const READ_SPARE: Opcode = opcode::read_write::<SpareUser>(GROUP, 22);
/// `MEMWRITE`: a page with bytes of its spare area. Linux 3.3.
pub(crate) const WRITE: Opcode = opcode::read_write::<WriteUser>(GROUP, 24);
/// `MEMREAD`: a page, bytes of its spare area, and what error correction did to them. Linux 6.1.
pub(crate) const READ: Opcode = opcode::read_write::<ReadUser>(GROUP, 26);

/// `MTD_OPS_AUTO_OOB`: spare bytes are those that the layout leaves free, in their order.
pub(crate) const AUTO_OOB: u8 = 1;

/// `struct mtd_info_user`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct InfoUser {
    pub(crate) kind: u8,
    pub(crate) flags: u32,
    /// Overflows beyond 4 GiB.
    pub(crate) size: u32,
    pub(crate) erase_size: u32,
    pub(crate) write_size: u32,
    pub(crate) spare_size: u32,
    pub(crate) padding: u64,
}

/// `struct mtd_ecc_stats`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct EccStatsUser {
    pub(crate) corrected: u32,
    pub(crate) failed: u32,
    pub(crate) bad_blocks: u32,
    pub(crate) table_blocks: u32,
}

/// `struct erase_info_user64`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct EraseUser {
    pub(crate) start: u64,
    pub(crate) length: u64,
}

/// `struct mtd_oob_buf64`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SpareUser {
    pub(crate) start: u64,
    pub(crate) pad: u32,
    pub(crate) length: u32,
    pub(crate) bytes: u64,
}

/// `struct mtd_write_req`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct WriteUser {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) spare_length: u64,
    pub(crate) data: u64,
    pub(crate) spare: u64,
    pub(crate) mode: u8,
    pub(crate) padding: [u8; 7],
}

/// `struct mtd_read_req`, with `struct mtd_read_req_ecc_stats` at its end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ReadUser {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) spare_length: u64,
    pub(crate) data: u64,
    pub(crate) spare: u64,
    pub(crate) mode: u8,
    pub(crate) padding: [u8; 7],
    pub(crate) uncorrectable: u32,
    pub(crate) corrected_bits: u32,
    pub(crate) bits_max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that `mtd-utils` uses on the machines where the two directions are encoded as on x86 and ARM.
    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm", target_arch = "riscv64"))]
    fn the_numbers_are_those_of_the_kernel() {
        let numbers = [GET_INFO, GET_BAD_BLOCK, SET_BAD_BLOCK, GET_ECC_STATS, ERASE, READ_SPARE, WRITE, READ];
        let expected: [Opcode; 8] =
            [0x8020_4D01, 0x4008_4D0B, 0x4008_4D0C, 0x8010_4D12, 0x4010_4D14, 0xC018_4D16, 0xC030_4D18, 0xC040_4D1A];
        assert_eq!(numbers, expected);
    }
}
