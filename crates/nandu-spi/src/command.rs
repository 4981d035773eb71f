//! Opcodes, registers and bits that all parts of the table share.

/// Back to the state after power-up, but for the registers on most parts. The chip is busy for a while.
pub const RESET: u8 = 0xff;
/// Reads the identity: one dummy or address byte, then the maker's byte and what follows.
pub const READ_ID: u8 = 0x9f;
/// Reads a register: one address byte, one byte in.
pub const GET_FEATURE: u8 = 0x0f;
/// Writes a register: one address byte, one byte out.
pub const SET_FEATURE: u8 = 0x1f;
/// Allows the next program or erase.
pub const WRITE_ENABLE: u8 = 0x06;
/// Forbids it again.
pub const WRITE_DISABLE: u8 = 0x04;
/// Reads a page of the array into the cache: three bytes of row address. The chip is busy.
pub const PAGE_READ: u8 = 0x13;
/// Reads the cache: two bytes of column, one dummy byte, data in on one lane.
pub const READ_CACHE: u8 = 0x03;
/// The same with the data on two lanes.
pub const READ_CACHE_X2: u8 = 0x3b;
/// The same with the data on four lanes.
pub const READ_CACHE_X4: u8 = 0x6b;
/// Loads the cache, on some parts after setting it to ones: two bytes of column, data out on one lane.
pub const PROGRAM_LOAD: u8 = 0x02;
/// The same with the data on four lanes.
pub const PROGRAM_LOAD_X4: u8 = 0x32;
/// Loads the cache and leaves its other bytes: two bytes of column, data out on one lane.
pub const PROGRAM_LOAD_MORE: u8 = 0x84;
/// The same with the data on four lanes.
pub const PROGRAM_LOAD_MORE_X4: u8 = 0x34;
/// Programs the cache into a page: three bytes of row address. The chip is busy.
pub const PROGRAM_EXECUTE: u8 = 0x10;
/// Erases a block: three bytes of the row address of any of its pages. The chip is busy.
pub const BLOCK_ERASE: u8 = 0xd8;
/// Selects a die of a stack, Winbond: one byte out, the die's number. No busy time.
pub const SELECT_DIE: u8 = 0xc2;
/// Puts the part into deep power-down, on parts that have it: from then on it hears nothing but [`RELEASE_POWER_DOWN`].
pub const DEEP_POWER_DOWN: u8 = 0xb9;
/// Wakes a part from deep power-down, which takes a while; to a part that is awake it means nothing.
pub const RELEASE_POWER_DOWN: u8 = 0xab;
/// Reads how many bits were corrected, Macronix: one dummy byte, one byte in.
pub const READ_ECC_STATUS: u8 = 0x7c;

/// Register of block protection: 0 unlocks every block.
pub const REGISTER_LOCK: u8 = 0xa0;
/// Register of configuration: [`CONFIG_ECC`] and its neighbours.
pub const REGISTER_CONFIG: u8 = 0xb0;
/// Register of status: [`STATUS_BUSY`] and its neighbours.
pub const REGISTER_STATUS: u8 = 0xc0;
/// Register that selects the die, Micron: bit 6.
pub const REGISTER_DIE: u8 = 0xd0;
/// Register with the count of corrected bits in bits 7 to 4, Winbond's KV parts and Kioxia.
pub const REGISTER_ECC_COUNT: u8 = 0x30;
/// Second register of status, GigaDevice: bits 5 and 4 say more of the corrected bits.
pub const REGISTER_STATUS_2: u8 = 0xf0;

/// Bit of [`REGISTER_CONFIG`]: four lanes are allowed, on parts that have it.
pub const CONFIG_QUAD: u8 = 0x01;
/// Bit of [`REGISTER_CONFIG`]: reads go page by page, on Winbond's parts ("BUF").
pub const CONFIG_BUFFER: u8 = 0x08;
/// Bit of [`REGISTER_CONFIG`]: error correction is on.
pub const CONFIG_ECC: u8 = 0x10;
/// Bit of [`REGISTER_CONFIG`]: the one-time and parameter pages stand in for the array.
pub const CONFIG_OTP: u8 = 0x40;

/// Bit of [`REGISTER_STATUS`]: an operation goes on. Nothing else in the register is valid while it is set.
pub const STATUS_BUSY: u8 = 0x01;
/// Bit of [`REGISTER_STATUS`]: a program or erase is allowed.
pub const STATUS_WRITE_ENABLED: u8 = 0x02;
/// Bit of [`REGISTER_STATUS`]: the last erase failed, or its block is locked.
pub const STATUS_ERASE_FAILED: u8 = 0x04;
/// Bit of [`REGISTER_STATUS`]: the last program failed, or its block is locked.
pub const STATUS_PROGRAM_FAILED: u8 = 0x08;

/// Bits of [`REGISTER_LOCK`] that protect blocks, on every part of the table. A part that lost its power has some of them set again.
pub const LOCK_BLOCKS: u8 = 0x78;

/// Bytes of an identity that are read. The longest in the table has as many.
pub const IDENTITY_SIZE: usize = 5;
