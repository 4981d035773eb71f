//! The log, below any owner.

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};
use nandu_log::{Budget, Claim, Claimed, Fate, Kind, Log, LogError, LogOptions, Parts};

use nandu::nand::NandErrorKind;

/// 8 bytes for each of 1024 blocks, a page and the table.
const MEMORY_SIZE: usize = 12 * 1024;

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    append(&mut memory, number).unwrap_or(0)
}

fn append(memory: &mut [u8], number: u32) -> Result<u32, LogError<NandErrorKind>> {
    let chip = SpiNand::new(ONE_BIT, Pins);
    let options = LogOptions::DEFAULT;
    let mut log = Log::unopened(Parts::new(chip, &options, memory)?);
    match number & 1 {
        0 => log.format(&options)?,
        _ => log.mount(&options)?,
    }
    let mut page = [number as u8; 2048];
    let mut budget = Budget::idle(number);
    while let Some(victim) = log.victim(&mut budget)? {
        let copy = log.copy(&mut page, Kind::Node, &victim)?;
        log.dies(victim.page());
        log.answer(victim, if copy.0 > 0 { Fate::Copied(1) } else { Fate::Dead }, &mut budget);
    }
    let Claimed::Granted(mut grant) = log.claim(Claim::Grow, 2, 2)? else { return Ok(0) };
    let node = log.append(&mut page, Kind::Node, &mut grant)?;
    let commit = log.commit(&mut page, grant)?;
    log.read(node, &mut page)?;
    log.unmount().map_err(|(error, _)| error)?;
    Ok(commit.0)
}
