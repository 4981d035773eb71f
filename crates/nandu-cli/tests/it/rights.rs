//! Who may do what in a mount, as the kernel asks for it: bits of programs, access lists, file handles, attributes.
//!
//! Most of it needs another user than root, so these tests are for root, and say so where somebody else runs them.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

use rustix::fs::XattrFlags;

use crate::mounted::{Mounted, has, succeed};

const SMALL: [&str; 4] = ["--chip", "w25n01gv", "--blocks", "64"];

/// Somebody whom no file belongs to.
const STRANGER: &str = "65534";

/// A mount for all users; `None`, with a word, where it cannot be had.
fn shared() -> Option<Mounted> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can act as somebody else");
        return None;
    }
    let mounted = Mounted::with(&SMALL, &["--mode", "1777"], &["--allow-other"])?;
    // Whoever is not root has to get there.
    fs::set_permissions(mounted.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    Some(mounted)
}

/// Runs a shell's commands in the mounted directory as somebody else.
fn stranger(mounted: &Mounted, groups: &str, script: &str) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", STRANGER, "--regid", STRANGER, "--groups", groups, "sh", "-e", "-c", script]);
    command.current_dir(mounted.root()).output().unwrap()
}

fn as_stranger(mounted: &Mounted, script: &str) {
    let output = stranger(mounted, STRANGER, script);
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A user who is not root makes a volume, mounts it and writes to it.
#[test]
fn a_user_writes_to_a_volume_of_ones_own() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: the other tests are of a user who is not root");
        return;
    }
    let Some(probe) = Mounted::with(&SMALL, &[], &[]) else { return };
    drop(probe);
    if mode(Path::new("/dev/fuse")) & 0o006 != 0o006 {
        eprintln!("SKIPPED: only root can use /dev/fuse here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // The program itself may lie where only root gets.
    let program = directory.path().join("nandu");
    fs::copy(assert_cmd::cargo::cargo_bin("nandu"), &program).unwrap();
    chown(directory.path(), Some(65_534), Some(65_534)).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let script = "
        ./nandu create c.nand --blocks 64 > log
        ./nandu fs format c.nand > log
        mkdir mnt
        ./nandu mount c.nand mnt
        echo content > mnt/file && mkdir mnt/directory
        test \"$(stat -c %u:%g mnt/file)\" = 65534:65534
        grep -q ' fuse.nandu ' /proc/self/mounts
        fusermount3 -u mnt
        test \"$(./nandu fs cat c.nand /file)\" = content
    ";
    let mut command = Command::new("setpriv");
    command.args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", "sh", "-e", "-c", script]);
    let output = command.current_dir(directory.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The bits of programs go when a stranger changes the file in any way, and stay when root does.
#[test]
fn a_stranger_who_changes_a_file_takes_the_bits_of_programs_from_it() {
    let Some(mounted) = shared() else { return };
    let path = mounted.root().join("file");
    let calls = [
        "echo x > file",
        "echo x >> file",
        "truncate -s 10 file",
        "truncate -s 100000 file",
        "fallocate -n -l 30000 file",
        "fallocate -p -o 0 -l 100 file",
        "dd if=/dev/zero of=file bs=10 count=1 conv=notrunc oflag=sync 2>/dev/null",
    ];
    for call in calls {
        for (bits, left) in [(0o6666, 0o666), (0o6777, 0o777), (0o4766, 0o766), (0o2676, 0o676)] {
            fs::write(&path, vec![1; 20_000]).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            assert_eq!(mode(&path), bits);
            as_stranger(&mounted, call);
            assert_eq!(mode(&path), left, "{call} of {bits:o}");
            fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
            mounted.shell(call);
            assert_eq!(mode(&path), bits, "{call} of {bits:o} by root");
        }
    }
    // Who is in the group of the file may keep its bit, where it is not that of a program.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6666)).unwrap();
    let output = stranger(&mounted, "0", "echo x > file");
    assert!(output.status.success());
    assert_eq!(mode(&path), 0o2666);
    // A new owner runs nobody else's program, whoever gives it to whom.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).unwrap();
    chown(&path, Some(1000), None).unwrap();
    assert_eq!(mode(&path), 0o777);
}

/// Access lists decide, follow the permissions, are inherited, and are copied.
#[test]
fn access_lists_are_kept_in_step_with_permissions() {
    let Some(mut mounted) = shared() else { return };
    let root = mounted.root();
    let list = |entries: &[(u16, u16, u32)]| {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for &(tag, permissions, id) in entries {
            bytes.extend([tag.to_le_bytes(), permissions.to_le_bytes()].concat());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    };
    let any = u32::MAX;
    let (access, default) = ("system.posix_acl_access", "system.posix_acl_default");
    let get = |path: &Path, name: &str| {
        let mut value = [0; 256];
        rustix::fs::getxattr(path, name, &mut value[..]).ok().map(|size| value[..size].to_vec())
    };
    let set =
        |path: &Path, name: &str, value: &[u8]| rustix::fs::setxattr(path, name, value, XattrFlags::empty()).unwrap();
    // The stranger is let in by name only.
    let file = root.join("file");
    fs::write(&file, b"secret").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(!stranger(&mounted, STRANGER, "cat file").status.success());
    let named = [(1, 6, any), (2, 6, 65_534), (4, 0, any), (0x10, 6, any), (0x20, 0, any)];
    set(&file, access, &list(&named));
    as_stranger(&mounted, "cat file && echo more >> file");
    assert_eq!(mode(&file), 0o660, "the group's bits are the mask");
    // Permissions change the mask.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    as_stranger(&mounted, "cat file");
    assert!(!stranger(&mounted, STRANGER, "echo more >> file").status.success());
    let mut masked = named;
    masked[3].1 = 4;
    assert_eq!(get(&file, access), Some(list(&masked)));
    // What permissions can say is no list.
    set(&file, access, &list(&[(1, 6, any), (4, 4, any), (0x20, 4, any)]));
    assert_eq!((mode(&file), get(&file, access)), (0o644, None));
    // A directory gives its default list to what is made in it, and the umask plays no part there.
    let directory = root.join("directory");
    fs::create_dir(&directory).unwrap();
    let inherited = [(1, 7, any), (2, 7, 65_534), (4, 5, any), (0x10, 7, any), (0x20, 0, any)];
    set(&directory, default, &list(&inherited));
    mounted.shell(
        "umask 077; echo x > directory/file; mkdir directory/below; ln -s file directory/link; mkfifo directory/pipe",
    );
    let mut of_file = inherited;
    (of_file[0].1, of_file[3].1) = (6, 6);
    assert_eq!((mode(&directory.join("file")), get(&directory.join("file"), access)), (0o660, Some(list(&of_file))));
    assert_eq!((mode(&directory.join("pipe")), get(&directory.join("pipe"), access)), (0o660, Some(list(&of_file))));
    let below = directory.join("below");
    assert_eq!((mode(&below), get(&below, access)), (0o770, Some(list(&inherited))));
    assert_eq!(get(&below, default), Some(list(&inherited)));
    as_stranger(&mounted, "echo y >> directory/file");
    // Without one the umask counts.
    mounted.shell("umask 027; echo x > plain; mkdir plainly");
    assert_eq!((mode(&root.join("plain")), mode(&root.join("plainly"))), (0o640, 0o750));
    // Copies keep lists, in the mount and out of it.
    mounted.shell("cp -a directory copy");
    assert_eq!(get(&root.join("copy/file"), access), Some(list(&of_file)));
    assert_eq!(get(&root.join("copy/below"), default), Some(list(&inherited)));
    mounted.unmount();
    mounted.mount_with(&["--allow-other"]);
    assert_eq!(get(&root.join("copy/file"), access), Some(list(&of_file)));
    succeed(&["fs", "import", "mnt/directory", "d.nand"], {
        let path = mounted.directory.path();
        succeed(&["create", "d.nand", "--blocks", "64"], path);
        succeed(&["fs", "format", "d.nand"], path);
        path
    });
    succeed(&["fs", "export", "d.nand", "mnt/out"], mounted.directory.path());
    assert_eq!(get(&root.join("out/file"), access), Some(list(&of_file)));
    mounted.unmount();
    mounted.check();
}

/// What a file is called by the kernel's number of it is found when the kernel has forgotten it.
#[test]
fn a_file_handle_outlives_the_memory_of_the_kernel() {
    let Some(mut mounted) = shared() else { return };
    if !has("python3") {
        return;
    }
    fs::create_dir_all(mounted.root().join("a/b")).unwrap();
    fs::write(mounted.root().join("a/b/file"), b"content").unwrap();
    let script = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]
def handle(path):
    found, mount = Handle(size=128), ctypes.c_int()
    if libc.name_to_handle_at(-100, path.encode(), ctypes.byref(found), ctypes.byref(mount), 0):
        sys.exit(f"{path}: {os.strerror(ctypes.get_errno())}")
    return found
handles = {path: handle(path) for path in ["a/b/file", "a/b", "a"]}
root = os.open(".", os.O_RDONLY)
open("/proc/sys/vm/drop_caches", "w").write("2")
for path, kept in handles.items():
    found = libc.open_by_handle_at(root, ctypes.byref(kept), os.O_RDONLY)
    if found < 0:
        sys.exit(f"{path}: {os.strerror(ctypes.get_errno())}")
    if path == "a/b/file":
        assert os.read(found, 100) == b"content"
    else:
        assert len(os.listdir(found)) == 1
        assert os.path.realpath(f"/proc/self/fd/{found}") == os.path.realpath(path)
    os.close(found)
gone = handle("a/b/file")
os.unlink("a/b/file")
open("/proc/sys/vm/drop_caches", "w").write("2")
assert libc.open_by_handle_at(root, ctypes.byref(gone), os.O_RDONLY) < 0 and ctypes.get_errno() == 116
"#;
    let output = Command::new("python3").args(["-c", script]).current_dir(mounted.root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    mounted.unmount();
    mounted.check();
}

/// What the mount does not have it refuses by the number that programs look for.
#[test]
fn what_there_is_not_is_refused_as_elsewhere() {
    let Some(mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    let root = mounted.root();
    fs::write(root.join("file"), b"content").unwrap();
    let file = File::options().read(true).write(true).open(root.join("file")).unwrap();
    // Flags as `chattr` sets them.
    assert_eq!(rustix::fs::ioctl_getflags(&file).unwrap(), rustix::fs::IFlags::empty());
    let refused = rustix::fs::ioctl_setflags(&file, rustix::fs::IFlags::IMMUTABLE);
    assert_eq!(refused, Err(rustix::io::Errno::OPNOTSUPP));
    // A whiteout.
    let whiteout = rustix::fs::RenameFlags::WHITEOUT;
    let directory = File::open(&root).unwrap();
    let refused = rustix::fs::renameat_with(&directory, "file", &directory, "other", whiteout);
    assert_eq!(refused, Err(rustix::io::Errno::INVAL));
    // A file without a name.
    let (flags, mode) = (rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR, rustix::fs::Mode::RUSR);
    assert_eq!(rustix::fs::open(&root, flags, mode).unwrap_err(), rustix::io::Errno::OPNOTSUPP);
    // Attributes beyond 65,536 bytes, which the kernel refuses.
    let set = |size: usize| rustix::fs::setxattr(root.join("file"), "user.large", &vec![7; size], XattrFlags::empty());
    assert_eq!(set(65_537), Err(rustix::io::Errno::TOOBIG));
    // The attribute with the state of the chip is nobody's to set.
    let regions = "user.nandu.regions";
    let refused = rustix::fs::setxattr(root.join("file"), regions, b"1", XattrFlags::empty());
    assert_eq!(refused, Err(rustix::io::Errno::PERM));
    let mut names = [0; 256];
    assert_eq!(rustix::fs::listxattr(root.join("file"), &mut names[..]), Ok(0));
    assert!(rustix::fs::getxattr(root.join("file"), regions, &mut names[..]).unwrap() > 12);
}

/// Attributes have up to 65,536 bytes each, as Linux has them at most.
#[test]
fn attributes_are_as_large_as_linux_has_them() {
    let Some(mut mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    let path = mounted.root().join("file");
    fs::write(&path, b"content").unwrap();
    let value = |size: usize| (0..size).map(|at| (at / 9) as u8).collect::<Vec<u8>>();
    let attributes = [("user.a", 3_000), ("user.b", 3_000), ("user.c", 65_536), ("user.d", 65_000)];
    for (name, size) in attributes {
        rustix::fs::setxattr(&path, name, &value(size), XattrFlags::CREATE).unwrap();
    }
    let exists = rustix::fs::setxattr(&path, "user.c", &value(9_000), XattrFlags::CREATE);
    assert_eq!(exists, Err(rustix::io::Errno::EXIST));
    let check = |path: &Path| {
        for (name, size) in attributes {
            let mut found = vec![0; 65_536];
            assert_eq!(rustix::fs::getxattr(path, name, &mut found[..]), Ok(size), "{name}");
            assert!(found[..size] == value(size), "{name}");
        }
        let mut short = vec![0; 64_999];
        assert_eq!(rustix::fs::getxattr(path, "user.d", &mut short[..]), Err(rustix::io::Errno::RANGE));
    };
    check(&path);
    mounted.unmount();
    mounted.check();
    mounted.mount_again();
    check(&path);
    rustix::fs::removexattr(&path, "user.c").unwrap();
    fs::remove_file(&path).unwrap();
    mounted.unmount();
    mounted.check();
}

/// A read that the kernel serves from its memory is noted too.
#[test]
fn a_read_from_memory_is_noted() {
    let Some(mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    mounted.shell(
        "
        echo a > file
        sleep .3
        cat file > ../read
        sleep 1.5
        test \"$(stat -c %X.%x file)\" != \"$(stat -c %Y.%y file)\"
        echo b > other && touch -a -d '2001-01-01 00:00:00' other && sync other
        test \"$(stat -c %X other)\" -lt 1000000000
        cat other > ../read
        sleep 1.1
        test \"$(stat -c %X other)\" -gt 1000000000
        ",
    );
}
