//! Single operations.

use std::ops::ControlFlow;

use nandu_dffs::{Changes, Dffs, Error, Node};
use nandu_files::errno::ESTALE;
use nandu_files::{FileError, FileSystem, Ino};
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

/// A logical number goes to the next directory that is made; whoever holds the old one does not meet that.
#[test]
fn a_directory_that_is_gone_is_not_another_with_its_number() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Dffs::format(Sim::new(SMALL), OPTIONS, &mut memory).unwrap();
    let root = fs.root();
    let mut old = fs.mkdir(root, b"d", NEW).unwrap();
    let mut ino = FileSystem::lookup(&mut fs, Ino::ROOT, b"d").unwrap();
    for round in 0..6 {
        fs.rmdir(root, b"d").unwrap();
        assert_eq!(fs.stat(Node::Directory(old)), Err(Error::NotFound));
        let new = fs.mkdir(root, b"d", NEW).unwrap();
        let file = fs.create(new, b"f", NEW).unwrap();
        assert_eq!(new.number(), old.number());
        assert_ne!(new, old);
        if round == 3 {
            let chip = fs.unmount().unwrap();
            fs = Dffs::mount(chip, OPTIONS, &mut memory).unwrap();
        } else if round == 4 {
            let chip = fs.abandon();
            fs = Dffs::mount(chip, OPTIONS, &mut memory).unwrap();
        }
        assert_eq!(fs.lookup(old, b"f"), Err(Error::Gone));
        assert_eq!(fs.create(old, b"g", NEW), Err(Error::Gone));
        assert_eq!(fs.mkdir(old, b"g", NEW), Err(Error::Gone));
        assert_eq!(fs.unlink(old, b"f"), Err(Error::Gone));
        assert_eq!(fs.rmdir(old, b"f"), Err(Error::Gone));
        assert_eq!(fs.rename(old, b"f", root, b"g", true), Err(Error::Gone));
        assert_eq!(fs.rename(root, b"d", old, b"g", true), Err(Error::Gone));
        assert_eq!(fs.parent(old), Err(Error::Gone));
        assert_eq!(fs.stat(Node::Directory(old)), Err(Error::Gone));
        assert_eq!(fs.set_attributes(Node::Directory(old), Changes::default()), Err(Error::Gone));
        assert_eq!(fs.read_dir(old, 0, &mut |_| ControlFlow::Continue(())), Err(Error::Gone));
        let error = FileSystem::stat(&mut fs, ino).unwrap_err();
        assert_eq!(FileError::errno(&error), ESTALE);
        // The new one is what it is, after a renaming too, and after its page has moved many times.
        fs.rename(root, b"d", root, b"e", true).unwrap();
        for number in 0..200 {
            let other = fs.create(root, b"other", NEW).unwrap();
            fs.write(other, 0, &[number; 600]).unwrap();
            fs.close(other).unwrap();
            fs.unlink(root, b"other").unwrap();
        }
        fs.rename(root, b"e", root, b"d", true).unwrap();
        assert_eq!(fs.lookup(new, b"f"), Ok(Node::File(file)));
        assert_eq!(fs.lookup(root, b"d"), Ok(Node::Directory(new)));
        fs.unlink(new, b"f").unwrap();
        ino = FileSystem::lookup(&mut fs, Ino::ROOT, b"d").unwrap();
        old = new;
    }
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}
