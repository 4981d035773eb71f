//! What does not serve again when a campaign is over is noticed.

use nandu_fs::{Fs, FsError, Ino};
use nandu_nand::{Geometry, Nand};
use nandu_sim::{Chip, Sim};
use nandu_suite::liveness::{Files, serves_again};
use nandu_suite::{Opened, SMALL, System};

use crate::rig::{FILE, Nandu, OPTIONS, formatted_with, memory};

const CHIP: Chip = SMALL.with_blocks(80);

/// Pages of a file that is open without a name.
const PAGES: usize = 150;

/// A file system in which somebody holds a file without a name open, whose room does not come back.
#[derive(Clone)]
struct Holding;

impl System for Holding {
    type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Nandu(OPTIONS).memory_size(geometry)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Nandu(OPTIONS).format(chip, memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Nandu(OPTIONS).mount(chip, memory)
    }

    fn let_go<'m, N: Nand + 'm>(&self, fs: &mut Fs<'m, N>) -> Result<(), FsError<N::Error>> {
        let file = fs.lookup(Ino::ROOT, b"held")?;
        fs.open(file)?;
        fs.unlink(Ino::ROOT, b"held")
    }
}

#[test]
fn room_that_does_not_come_back_is_missed() {
    let mut sim: Sim = formatted_with(CHIP, OPTIONS);
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(&mut sim, OPTIONS, &mut memory).unwrap();
    let file = fs.create(Ino::ROOT, b"held", FILE).unwrap();
    assert_eq!(fs.write_at(file, 0, &[1; PAGES * 512]), Ok(PAGES * 512));
    fs.unmount().unwrap();
    assert_eq!(serves_again(&Files(&Nandu(OPTIONS)), &mut sim.clone()).map(drop), Ok(()));
    let found = serves_again(&Files(&Holding), &mut sim.clone()).unwrap_err();
    assert!(found.contains("came back"), "{found}");
}
