//! Whether a chip holds something that a format would lose.

use std::path::Path;

use anyhow::bail;
use nandu_nand::BlockAddr;

use crate::flash::Flash;
use crate::kind;
use crate::volume::System;

/// How the first page of something begins that is often found on flash, and what it is.
const SIGNS: [(&[u8], &str); 6] = [
    (b"UBI#", "UBI"),
    (b"\x85\x19", "JFFS2"),
    (b"\x19\x85", "JFFS2"),
    (b"hsqs", "squashfs"),
    (b"\x27\x05\x19\x56", "a picture for U-Boot"),
    (b"\xd0\x0d\xfe\xed", "a device tree or FIT picture"),
];

/// Refuses a chip on which a block begins with something. Costs a page read for each block of a device.
pub(crate) fn demand(image: &Path, flash: &Flash) -> anyhow::Result<()> {
    let geometry = &flash.chip().geometry;
    let mut blocks = (0..geometry.block_count).map(BlockAddr);
    let Some(first) = blocks.find(|&block| flash.is_programmed(block)) else { return Ok(()) };
    let name = image.display();
    if flash.sim().is_some() {
        bail!("{name}: the chip is not blank; --force formats it and loses what it holds");
    }
    let begin = flash.content(geometry.first_page(first)).unwrap_or_default();
    let sign = SIGNS.iter().find(|(sign, _)| begin.starts_with(sign)).map(|&(_, what)| what);
    let what = match sign {
        Some(what) => what,
        None if kind::system(flash) == System::Dffs => "a file system of DFFS",
        None if kind::is_of_format_one(flash) => "a volume of nandu's of format 1",
        None if kind::find(flash).is_some() => "a volume of nandu's",
        None => "something that is not nandu's",
    };
    bail!("{name}: holds {what}; --force formats it and loses that")
}
