//! Programs of this machine on a mounted file system. Where FUSE cannot be used the tests say so and pass; with `NANDU_FUSE=1` they
//! fail instead.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::mounted::{Mounted, Random, has, nandu, succeed};

/// What `fsx` does: everything it can do to a file, mapped reads and writes and copies within the file too.
pub(crate) const FSX_WEIGHTS: &str = "
flen = 262144
[opsize]
max = 16384
[weights]
close_open = 2
invalidate = 2
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 0.2
fdatasync = 0.2
posix_fallocate = 2
punch_hole = 5
sendfile = 3
posix_fadvise = 1
copy_file_range = 3
";

/// Has `fsx`, where it is installed, do so many operations on a file of a mount.
pub(crate) fn run_fsx(mounted: &Mounted, name: &str, count: &str, settings: &str) {
    if !has("fsx") {
        return;
    }
    let directory = mounted.directory.path();
    fs::write(directory.join("fsx.toml"), settings).unwrap();
    let file = format!("mnt/{name}");
    let arguments = ["-N", count, "-S", "1", "-f", "fsx.toml", "-P", ".", &file];
    let output = Command::new("fsx").args(arguments).current_dir(directory).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("All operations completed"), "{said}");
}

/// The file system exerciser itself: forty thousand operations, and some more where each mapped write is synced.
#[test]
fn fsx_finds_nothing_in_forty_thousand_operations() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    for (name, count, keeps_maps) in [("kept", "40000", true), ("synced", "2000", false)] {
        let settings = format!("nomsyncafterwrite = {keeps_maps}\n{FSX_WEIGHTS}");
        run_fsx(&mounted, name, count, &settings);
    }
    mounted.unmount();
    mounted.check();
}

/// What a file of `fsx`'s kind goes through: writes, reads, truncations, holes, opened again and again; after each step it is
/// what it should be.
#[test]
fn a_file_is_what_a_hundred_thousand_random_operations_made_of_it() {
    const SIZE_MAX: u64 = 256 * 1024;
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let path = mounted.root().join("file");
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
    let (mut random, mut file, mut model) = (Random(88_172_645_463_325_252), open(), Vec::new());
    for step in 0..100_000_u32 {
        let (at, size) = (random.below(SIZE_MAX), 1 + random.below(12_000));
        let end = (at + size).min(SIZE_MAX);
        match random.below(100) {
            0..=34 => {
                let bytes = vec![random.below(256) as u8; (end - at) as usize];
                file.write_all_at(&bytes, at).unwrap();
                model.resize(model.len().max(end as usize), 0);
                model[at as usize..end as usize].copy_from_slice(&bytes);
            }
            35..=84 => {
                let mut bytes = vec![1; size as usize];
                let count = file.read_at(&mut bytes, at).unwrap();
                let start = (at as usize).min(model.len());
                let expected = &model[start..model.len().min((at + size) as usize).max(start)];
                assert_eq!(&bytes[..count], expected, "step {step}: {size} bytes at {at}");
            }
            85..=91 => {
                file.set_len(at).unwrap();
                model.resize(at as usize, 0);
            }
            92..=96 => {
                let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&file, flags, at, size).unwrap();
                let start = (at as usize).min(model.len());
                let end = ((at + size) as usize).min(model.len());
                model[start..end].fill(0);
            }
            97..=98 => {
                drop(file);
                file = open();
                assert_eq!(file.metadata().unwrap().size(), model.len() as u64, "step {step}");
            }
            _ if random.below(20) == 0 => file.sync_all().unwrap(),
            _ => {}
        }
    }
    drop(file);
    assert!(fs::read(&path).unwrap() == model);
    mounted.unmount();
    mounted.check();
    mounted.mount_again();
    assert!(fs::read(&path).unwrap() == model, "after another mount");
}

/// What is below a directory: type and permissions, size, time of change, links.
type Listing = BTreeMap<PathBuf, (u32, u64, i64, i64, u64)>;

fn assert_same(one: &Listing, other: &Listing) {
    assert_eq!(one.len(), other.len());
    for (path, entry) in one {
        assert_eq!(Some(entry), other.get(path), "{}", path.display());
    }
}

fn listing(root: &Path) -> Listing {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let size = if metadata.is_dir() { 0 } else { metadata.size() };
            let short = path.strip_prefix(root).unwrap().to_path_buf();
            found.insert(short, (metadata.mode(), size, metadata.mtime(), metadata.mtime_nsec(), metadata.nlink()));
            if metadata.is_dir() {
                directories.push(path);
            }
        }
    }
    found
}

/// A tree of this machine with 5,000 files and links or more, copied in by `cp -a` and compared by `diff -r`.
#[test]
fn a_real_tree_is_copied_and_is_the_same() {
    const FILE_COUNT: usize = 5_000;
    const SIZE_MAX: u64 = 96 << 20;
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let source = tempfile::tempdir().unwrap();
    let source = source.path().join("tree");
    // Real files, of as many directories as it takes; on the machine itself they may change while they are compared.
    let (mut count, mut size) = (0, 0);
    let mut directories = vec![PathBuf::from("/usr/share"), PathBuf::from("/usr/include"), PathBuf::from("/usr/lib")];
    while let (Some(directory), true) = (directories.pop(), count < FILE_COUNT + 200) {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let into = source.join(directory.strip_prefix("/").unwrap());
        fs::create_dir_all(&into).unwrap();
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            let name = into.join(path.file_name().unwrap());
            if metadata.is_dir() {
                directories.push(path);
            } else if metadata.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&path).unwrap(), name).unwrap();
                count += 1;
            } else if metadata.is_file() && metadata.size() < 1 << 20 && size + metadata.size() < SIZE_MAX / 2 {
                fs::copy(&path, name).unwrap();
                size += metadata.size();
                count += 1;
            }
        }
    }
    assert!(count >= FILE_COUNT, "this machine has {count} files only");
    mounted.shell(&format!("cp -a {} . && diff -r --no-dereference {} tree", source.display(), source.display()));
    assert_same(&listing(&source), &listing(&mounted.root().join("tree")));
    mounted.unmount();
    mounted.check();
    succeed(&["fs", "export", "c.nand", "out"], mounted.directory.path());
    assert_same(&listing(&source), &listing(&mounted.directory.path().join("out/tree")));
    mounted.mount_again();
    mounted.shell("rm -r tree && test -z \"$(ls)\"");
}

/// A C program is built and run where its sources are.
#[test]
fn a_program_is_built_in_the_mount() {
    let Some(mounted) = Mounted::new("w25n01gv") else { return };
    if !has("cc") {
        return;
    }
    mounted.shell(
        r#"
        for n in 1 2 3 4 5; do printf 'int part%d(void) { return %d; }\n' $n $n > part$n.c; done
        printf 'int part1(void), part2(void), part3(void), part4(void), part5(void);\nint main(void) { return part1() + part2() + part3() + part4() + part5() - 15; }\n' > main.c
        cc -O1 -c ./*.c && cc -o program ./*.o && ./program && rm ./*.o
        "#,
    );
}

/// Programs cut files that they hold without a name, and none is promised room that nobody sets aside.
#[test]
fn a_file_without_a_name_is_cut_and_room_is_not_promised() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    mounted.shell(
        "exec 3<>tmp; rm tmp; head -c 1000000 /dev/zero >&3; truncate -s 0 /proc/self/fd/3; echo hello >&3; truncate -s 3 /proc/self/fd/3",
    );
    let file = File::create(mounted.root().join("file")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    assert_eq!(rustix::fs::fallocate(&file, flags, 0, 4 << 30), Err(rustix::io::Errno::OPNOTSUPP));
    assert_eq!(file.metadata().unwrap().len(), 0);
    drop(file);
    mounted.unmount();
    mounted.check();
}

/// The C library writes where `fallocate` makes no promise, so that programs that ask by `posix_fallocate` go on.
#[test]
fn posix_fallocate_of_the_c_library_writes_instead() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    if !has("python3") {
        return;
    }
    let script = "import os\nfile = os.open('file', os.O_RDWR | os.O_CREAT)\nos.write(file, b'abc')\nos.posix_fallocate(file, 1, 100_000)";
    mounted.shell(&format!("python3 -c \"{script}\""));
    let mut expected = vec![0; 100_001];
    expected[..3].copy_from_slice(b"abc");
    assert!(fs::read(mounted.root().join("file")).unwrap() == expected);
    mounted.unmount();
    mounted.check();
}

/// A repository with some history, and git's own check of it.
#[test]
fn git_keeps_a_repository_in_the_mount() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    if !has("git") {
        return;
    }
    mounted.shell(
        r#"
        export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1
        git init -q repository && cd repository
        git config user.name nobody && git config user.email nobody@example.org
        for n in $(seq 12); do
            mkdir -p d$n && seq $((n * 100)) > d$n/numbers && git add . && git commit -q -m "change $n"
        done
        git mv d3 moved && git commit -q -m moved && git gc -q && git fsck --strict
        test "$(git log --oneline | wc -l)" = 13
        "#,
    );
    mounted.unmount();
    mounted.check();
    mounted.mount_again();
    mounted.shell("cd repository && git fsck --strict && test -z \"$(git status --porcelain)\"");
}

/// What a program was told is durable is in the image when the process that serves the mount is killed.
#[test]
fn what_was_synced_outlives_the_process_that_serves_the_mount() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let root = mounted.root();
    for round in 0..3_u32 {
        let (name, next) = (root.join(format!("kept{round}")), root.join("next"));
        let bytes = vec![round as u8 + 1; 70_000];
        let file = File::create(&next).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file.sync_all().unwrap();
        fs::rename(&next, &name).unwrap();
        fs::create_dir(root.join(format!("directory{round}"))).unwrap();
        File::open(&root).unwrap().sync_all().unwrap();
        fs::write(root.join("not synced"), b"perhaps").unwrap();
        drop(file);
        mounted.kill();
        mounted.check();
        mounted.mount_again();
        for kept in 0..=round {
            let found = fs::read(root.join(format!("kept{kept}"))).unwrap();
            assert!(found.len() == 70_000 && found.iter().all(|&byte| u32::from(byte) == kept + 1), "{round}, {kept}");
            assert!(root.join(format!("directory{kept}")).is_dir());
        }
    }
}

/// FlexFS's background migration, in a real mount and in real time.
#[test]
fn pages_move_to_two_bits_a_cell_while_the_mount_is_left_alone() {
    let Some(mut mounted) = Mounted::new("paper-flex") else { return };
    let content: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).take(2_000_000).collect();
    let path = mounted.root().join("film");
    fs::write(&path, &content).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let regions = |mounted: &Mounted, what: &str| {
        let said = succeed(&["fs", "regions", what, "--json"], mounted.directory.path());
        let regions: serde_json::Value = serde_json::from_str(&said).unwrap();
        ["slc_pages", "mlc_pages"].map(|name| regions[name].as_u64().unwrap())
    };
    let [written, moved] = regions(&mounted, "mnt");
    assert!(written > 400 && moved < 100, "{written}, {moved}");
    let start = Instant::now();
    // To look is no request, so it does not keep pages from moving.
    while regions(&mounted, "mnt")[1] < moved + 80 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing moves");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(fs::read(&path).unwrap() == content);
    mounted.unmount();
    mounted.check();
    // A few copies were not named yet, and are made again.
    let [_, kept] = regions(&mounted, "c.nand");
    assert!(kept >= moved + 50, "{kept}, {moved}");
}

/// Pages programmed on the chip of an image that is not mounted: in all, and to collect garbage.
fn programs(mounted: &Mounted) -> (u64, u64) {
    let said = succeed(&["info", "c.nand", "--json"], mounted.directory.path());
    let info: serde_json::Value = serde_json::from_str(&said).unwrap();
    let of = |counters: &serde_json::Value| counters["programs"].as_u64().unwrap_or(0);
    (of(&info["counters"]), of(&info["ledger"]["gc"]))
}

/// The thread that works in idle time comes to rest (N14), also where policies place pages.
#[test]
fn a_mount_that_is_left_alone_wears_no_chip() {
    for chip in ["w25n01gv", "paper-flex"] {
        let Some(mut mounted) = Mounted::new(chip) else { return };
        let path = mounted.root().join("kept");
        fs::write(&path, vec![7; 5_000_000]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        std::thread::sleep(Duration::from_secs(6));
        mounted.unmount();
        let (before, collected) = programs(&mounted);
        assert!(before > 1_200 && collected < 2_500, "{chip}: {before}, {collected}");
        mounted.mount_again();
        assert_eq!(fs::metadata(&path).unwrap().len(), 5_000_000);
        // Longer than the thread waits before it looks for work.
        std::thread::sleep(Duration::from_secs(4));
        mounted.unmount();
        let (after, again) = programs(&mounted);
        if chip == "w25n01gv" {
            // A checkpoint that begins a block, and one at the end.
            assert!(after - before <= 2 && again == collected, "{chip}: {before}, {after}");
        }
        // Whoever has nothing left to do programs nothing.
        mounted.mount_again();
        std::thread::sleep(Duration::from_secs(4));
        mounted.unmount();
        let (last, again) = programs(&mounted);
        if chip == "w25n01gv" {
            assert_eq!((last, again), (after, collected), "{chip}");
        }
        mounted.check();
    }
}

/// A mount for reading refuses changes, and leaves the image as it was.
#[test]
fn a_mount_for_reading_changes_nothing() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    fs::write(mounted.root().join("file"), b"content").unwrap();
    mounted.unmount();
    let image = mounted.directory.path().join("c.nand");
    let before = fs::read(&image).unwrap();
    let output = nandu(&["mount", "c.nand", "mnt", "--ro", "--json"], mounted.directory.path());
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    mounted.process = u32::try_from(said["process"].as_u64().unwrap()).unwrap();
    assert_eq!(fs::read(mounted.root().join("file")).unwrap(), b"content");
    assert!(fs::write(mounted.root().join("other"), b"x").is_err());
    mounted.unmount();
    assert!(before == fs::read(&image).unwrap(), "the image is as it was");
}

/// Reading a file that was changed is noted, and without the wish for it is not.
#[test]
fn reads_are_noted_unless_nobody_wants_that() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let atime = |mounted: &Mounted| fs::metadata(mounted.root().join("file")).unwrap().atime();
    let age = |mounted: &Mounted| {
        mounted.shell("printf x > file && touch -a -d '2001-01-01 00:00:00' file && sync file");
        assert!(atime(mounted) < 1_000_000_000);
    };
    age(&mounted);
    // A mount that has nothing in its memory asks for what is read.
    mounted.unmount();
    mounted.mount_again();
    mounted.shell("test x = \"$(cat file)\"");
    std::thread::sleep(Duration::from_millis(1100));
    assert!(atime(&mounted) > 1_000_000_000);
    age(&mounted);
    mounted.unmount();
    let output = nandu(&["mount", "c.nand", "mnt", "--noatime", "--json"], mounted.directory.path());
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    mounted.process = u32::try_from(said["process"].as_u64().unwrap()).unwrap();
    mounted.shell("test x = \"$(cat file)\"");
    std::thread::sleep(Duration::from_millis(1100));
    assert!(atime(&mounted) < 1_000_000_000);
    mounted.unmount();
    mounted.check();
}

/// Debian's benchmarks, for what they do to files.
#[test]
fn postmark_and_dbench_run_in_the_mount() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    // Neither has a --version.
    let is_there = |program: &str| {
        let found = Path::new("/usr/bin").join(program).exists();
        if !found {
            eprintln!("SKIPPED: there is no {program} here");
        }
        found
    };
    if is_there("postmark") {
        mounted.shell(
            r#"
            mkdir postmark
            printf 'set location postmark\nset number 300\nset transactions 2000\nset size 500 20000\nrun\nquit\n' > commands
            postmark commands > report
            grep -q 'Files:' report && test -z "$(ls postmark)"
            "#,
        );
    }
    let load = ["/usr/share/dbench/client.txt", "/usr/share/dbench/clients/client.txt"];
    if is_there("dbench") {
        match load.into_iter().find(|load| Path::new(load).exists()) {
            Some(load) => mounted.shell(&format!(
                "mkdir dbench && dbench -c {load} -D dbench -t 5 2 > dbench.log && grep -q Throughput dbench.log"
            )),
            None => eprintln!("SKIPPED: dbench has no load here"),
        }
    }
    mounted.unmount();
    mounted.check();
}

/// A database with temporary tables in files, savepoints and a VACUUM, which work on files that have lost their names.
#[test]
fn sqlite_works_in_the_mount() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    if !has("sqlite3") {
        return;
    }
    for journal in ["DELETE", "WAL", "TRUNCATE", "PERSIST"] {
        fs::write(
            mounted.directory.path().join("script.sql"),
            format!(
                "
                PRAGMA journal_mode = {journal};
                PRAGMA cache_size = 20;
                PRAGMA temp_store = FILE;
                CREATE TABLE kept(id INTEGER PRIMARY KEY, text TEXT, blob BLOB);
                CREATE INDEX by_text ON kept(text);
                CREATE TEMP TABLE passing(id INTEGER PRIMARY KEY, blob BLOB);
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
                    INSERT INTO passing SELECT i, randomblob(700) FROM n;
                BEGIN;
                INSERT INTO kept SELECT id, hex(substr(blob, 1, 20)), blob FROM passing;
                SAVEPOINT one;
                UPDATE kept SET blob = randomblob(900) WHERE id % 3 = 0;
                SAVEPOINT two;
                DELETE FROM kept WHERE id % 2 = 0;
                ROLLBACK TO two;
                DELETE FROM passing WHERE id % 5 < 4;
                ROLLBACK TO one;
                DELETE FROM kept WHERE id % 7 = 0;
                COMMIT;
                DROP TABLE passing;
                VACUUM;
                SELECT count(*) FROM (SELECT * FROM kept ORDER BY blob);
                PRAGMA integrity_check;
                "
            ),
        )
        .unwrap();
        mounted.shell(&format!(
            "SQLITE_TMPDIR=$PWD sqlite3 -bail {journal}.db < ../script.sql > said
            test \"$(tail -n 2 said | tr '\\n' ' ')\" = '2572 ok '"
        ));
    }
    mounted.unmount();
    mounted.check();
    mounted.mount_again();
    for journal in ["DELETE", "WAL", "TRUNCATE", "PERSIST"] {
        mounted.shell(&format!("test \"$(sqlite3 {journal}.db 'PRAGMA integrity_check')\" = ok"));
    }
}
