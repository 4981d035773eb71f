//! Single operations.

use nandu_dffs::{Dffs, Error, Node};
use nandu_sim::Sim;

use crate::rig::{NEW, OPTIONS, SMALL, everything, memory, violations};

#[test]
fn what_was_made_is_found_again() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Dffs::format(Sim::new(SMALL), OPTIONS, &mut memory).unwrap();
    let root = fs.root();
    let directory = fs.mkdir(root, b"d", NEW).unwrap();
    let file = fs.create(directory, b"f", NEW).unwrap();
    assert_eq!(fs.create(directory, b"f", NEW), Err(Error::Exists));
    assert_eq!(fs.write(file, 700, b"hello").unwrap(), 5);
    fs.fsync(file).unwrap();
    assert_eq!(fs.lookup(directory, b"f"), Ok(Node::File(file)));
    let before = everything(&mut fs).unwrap();
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    for is_cut in [true, false, true] {
        let chip = if is_cut { fs.abandon() } else { fs.unmount().unwrap() };
        fs = Dffs::mount(chip, OPTIONS, &mut memory).unwrap();
        assert_eq!(everything(&mut fs).unwrap(), before);
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
    assert_eq!(fs.rmdir(root, b"d"), Err(Error::NotEmpty));
}
