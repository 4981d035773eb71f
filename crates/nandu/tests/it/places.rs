//! Volumes that are made, opened and closed in the place where they are kept.

use nandu::fs::{Attributes, Format, Fs, FsError, Ino};
use nandu::{ByteCells, Error, Options, Store};
use nandu_sim::{Chip, Sim};

#[test]
fn a_store_is_closed_in_its_place_as_by_an_unmount() {
    let mut chip = Sim::new(Chip::W25N01GV.with_blocks(32));
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut place = None;
    let blank = Store::open_in(&mut place, &mut chip, ByteCells, options, &mut memory);
    assert!(matches!(blank, Err(Error::NotFormatted)) && place.is_none());
    let mut place = None;
    Store::format_in(&mut place, &mut chip, ByteCells, options, &mut memory).unwrap();
    place.as_mut().unwrap().put(b"lamp", b"on").unwrap();
    Store::unmount_in(&mut place).unwrap();
    assert!(place.is_none());

    let mut place = None;
    Store::open_in(&mut place, &mut chip, ByteCells, options, &mut memory).unwrap();
    let store = place.as_mut().unwrap();
    assert!(!store.stats().was_cut);
    assert_eq!(store.get(b"lamp").unwrap(), Some(&b"on"[..]));
    // Dropped as it is, it is as after a cut.
    store.put(b"lamp", b"off").unwrap();
    let mut store = Store::open(&mut chip, options, &mut memory).unwrap();
    assert!(store.stats().was_cut);
    assert_eq!(store.get(b"lamp").unwrap(), Some(&b"off"[..]));
}

/// Whatever goes wrong, and however early: nobody takes the volume that was there before for the one that was asked for.
#[test]
fn a_place_is_empty_after_an_error_whatever_it_held() {
    let mut chips = [0; 2].map(|_| Sim::new(Chip::W25N01GV.with_blocks(32)));
    let [first, second] = &mut chips;
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&first.chip().geometry, &options)];
    let mut place = None;
    Store::format_in(&mut place, &mut *first, ByteCells, options, &mut memory).unwrap();
    let small = Store::open_in(&mut place, &mut *second, ByteCells, options, &mut []);
    assert!(matches!(small, Err(Error::Memory { .. })) && place.is_none());

    let options = nandu::fs::Options::default();
    let mut memory = vec![0; Fs::<Sim>::memory_required(&first.chip().geometry, &options)];
    let mut place = None;
    Fs::format_in(&mut place, &mut *first, options, &Format::default(), &mut memory).unwrap();
    let small = Fs::mount_in(&mut place, &mut *second, options, &mut []);
    assert!(matches!(small, Err(FsError::Memory { .. })) && place.is_none());
}

#[test]
fn a_file_system_is_closed_in_its_place_as_by_an_unmount() {
    let mut chip = Sim::new(Chip::W25N01GV.with_blocks(32));
    let options = nandu::fs::Options::default();
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut place = None;
    let blank = Fs::mount_in(&mut place, &mut chip, options, &mut memory);
    assert!(matches!(blank, Err(FsError::NotFormatted)) && place.is_none());
    let mut place = None;
    Fs::format_in(&mut place, &mut chip, options, &Format::default(), &mut memory).unwrap();
    let file = place.as_mut().unwrap().create(Ino::ROOT, b"lamp", Attributes::FILE).unwrap();
    // It waits in memory, and goes to the chip with the unmount.
    place.as_mut().unwrap().write_at(file, 0, b"on").unwrap();
    Fs::unmount_in(&mut place).unwrap();
    assert!(place.is_none());

    let mut place = None;
    Fs::mount_in(&mut place, &mut chip, options, &mut memory).unwrap();
    let fs = place.as_mut().unwrap();
    assert!(!fs.stats().was_cut);
    let (file, mut content) = (fs.lookup(Ino::ROOT, b"lamp").unwrap(), [0; 4]);
    assert_eq!(fs.read_at(file, 0, &mut content).unwrap(), 2);
    assert_eq!(&content[..2], b"on");
}
