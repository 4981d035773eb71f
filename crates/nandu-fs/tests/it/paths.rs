//! Files by path, with a position, and with the traits of embedded-io.

use embedded_io::{Error as _, ErrorKind, Read, Seek, SeekFrom, Write};
use nandu_fs::{Attributes, File, Format, Fs, FsError, Ino, OpenOptions, Options};
use nandu_sim::{Chip, Sim};

const NEW: OpenOptions = OpenOptions { create: Some(Attributes::FILE), new: false, truncate: false, append: false };
const OLD: OpenOptions = OpenOptions { create: None, ..NEW };

fn memory(chip: &Sim) -> Vec<u8> {
    vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &Options::default())]
}

fn with_fs(work: impl FnOnce(&mut Fs<'_, Sim>)) {
    let chip = Sim::new(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    work(&mut Fs::format(chip, Options::default(), Format::default(), &mut bytes).unwrap());
}

#[test]
fn a_path_leads_to_what_its_names_do() {
    with_fs(|fs| {
        let (root, name) = fs.lookup_parent(b"/a").unwrap();
        assert_eq!((root, name), (Ino::ROOT, &b"a"[..]));
        let a = fs.mkdir(root, name, Attributes::DIRECTORY).unwrap();
        let (parent, name) = fs.lookup_parent(b"a//b/").unwrap();
        assert_eq!((parent, name), (a, &b"b"[..]));
        let b = fs.mkdir(parent, name, Attributes::DIRECTORY).unwrap();
        let c = fs.create(b, b"c", Attributes::FILE).unwrap();
        for path in [&b"/a/b/c"[..], b"a/b/c", b"//a///b/c/", b"/a/./b/c", b"/a/b/../b/c"] {
            assert_eq!(fs.lookup_path(path), Ok(c), "{path:?}");
        }
        assert_eq!((fs.lookup_path(b""), fs.lookup_path(b"///")), (Ok(Ino::ROOT), Ok(Ino::ROOT)));
        assert_eq!(fs.lookup_path(b"/a/x/c"), Err(FsError::NotFound { directory: a }));
        assert_eq!(fs.lookup_path(b"/a/b/c/d"), Err(FsError::NotDirectory(c)));
        assert_eq!(fs.lookup_parent(b"/"), Err(FsError::Name));
        assert_eq!(fs.lookup_parent(b""), Err(FsError::Name));
    });
}

#[test]
fn opening_makes_refuses_and_cuts_as_asked() {
    with_fs(|fs| {
        assert!(matches!(File::open(fs, b"/f", OLD), Err(FsError::NotFound { .. })));
        let mut file = File::open(fs, b"/f", NEW).unwrap();
        file.write_all(fs, b"hello").unwrap();
        file.close(fs).unwrap();
        assert!(matches!(File::open(fs, b"/f", OpenOptions { new: true, ..NEW }), Err(FsError::Exists { .. })));
        let mut file = File::open(fs, b"/f", OpenOptions { append: true, ..OLD }).unwrap();
        file.set_position(1);
        file.write_all(fs, b" you").unwrap();
        assert_eq!(file.position(), 9);
        file.set_position(3);
        let mut text = [0; 16];
        assert_eq!(file.read(fs, &mut text).unwrap(), 6);
        assert_eq!(&text[..6], b"lo you");
        file.close(fs).unwrap();
        let file = File::open(fs, b"/f", OpenOptions { truncate: true, ..OLD }).unwrap();
        assert_eq!(fs.stat(file.ino()).unwrap().size, 0);
        file.close(fs).unwrap();
        let (root, name) = fs.lookup_parent(b"/d").unwrap();
        fs.mkdir(root, name, Attributes::DIRECTORY).unwrap();
        assert!(matches!(File::open(fs, b"/d", NEW), Err(FsError::IsDirectory(_))));
    });
}

/// As in POSIX: what is open goes on living without its name.
#[test]
fn an_open_file_outlives_its_name() {
    with_fs(|fs| {
        let mut file = File::open(fs, b"/tmp", NEW).unwrap();
        file.write_all(fs, &[7; 10_000]).unwrap();
        fs.unlink(Ino::ROOT, b"tmp").unwrap();
        file.set_position(9_990);
        let mut end = [0; 20];
        assert_eq!(file.read(fs, &mut end).unwrap(), 10);
        let ino = file.ino();
        file.close(fs).unwrap();
        assert_eq!(fs.stat(ino).map(|stat| stat.size), Err(FsError::NoInode(ino)));
    });
}

#[test]
fn the_traits_of_embedded_io_work_on_an_open_file() {
    let chip = Sim::new(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut fs = Fs::format(chip, Options::default(), Format::default(), &mut bytes).unwrap();
    let mut file = File::open(&mut fs, b"/f", NEW).unwrap();
    let mut io = file.on(&mut fs);
    io.write_all(b"0123456789").unwrap();
    assert_eq!(io.seek(SeekFrom::Current(-3)), Ok(7));
    io.write_all(b"x").unwrap();
    assert_eq!(io.seek(SeekFrom::End(-8)), Ok(2));
    let mut text = [0; 6];
    io.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"23456x");
    assert_eq!(io.seek(SeekFrom::Current(-9)).map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    // Behind the end there is nothing to read, and a hole once something is written there.
    io.seek(SeekFrom::Start(20)).unwrap();
    assert_eq!(io.read(&mut text), Ok(0));
    io.write_all(b"y").unwrap();
    io.flush().unwrap();
    // Flushed is durable.
    let chip = fs.abandon();
    let mut bytes = memory(&chip);
    let mut fs = Fs::mount(chip, Options::default(), &mut bytes).unwrap();
    let mut file = File::open(&mut fs, b"f", OLD).unwrap();
    let mut all = [1; 21];
    file.on(&mut fs).read_exact(&mut all).unwrap();
    assert_eq!(&all, b"0123456x89\0\0\0\0\0\0\0\0\0\0y");
}

#[test]
fn a_full_chip_says_so_through_the_traits() {
    with_fs(|fs| {
        let mut file = File::open(fs, b"/f", NEW).unwrap();
        let mut io = file.on(fs);
        let mut written = 0_u64;
        let error = loop {
            match io.write(&[3; 5_000]) {
                Ok(count) => written += count as u64,
                Err(error) => break error,
            }
            assert!(written < 8 << 20);
        };
        assert_eq!((&error, error.kind()), (&FsError::Full, ErrorKind::WriteZero));
        // What was said to be written is there.
        assert_eq!(fs.stat(file.ino()).unwrap().size, written);
        file.close(fs).unwrap();
    });
}
