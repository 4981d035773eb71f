//! What a log of system calls becomes.

use super::*;

fn recorded(log: &str) -> String {
    let mut recorder = Recorder::new("/srv/me/work");
    for line in log.lines() {
        recorder.line(line.trim_start()).unwrap();
    }
    // Numbers of names are hashes; which they are does not matter here.
    let text = recorder.finish().to_text();
    let mut slots: Vec<String> = Vec::new();
    let numbered = text.lines().map(|line| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        if words[0] != "s" && words.get(1).is_some_and(|kind| kind == "n") {
            let place = slots.iter().position(|slot| *slot == words[3]).unwrap_or_else(|| {
                slots.push(words[3].clone());
                slots.len() - 1
            });
            words[3] = ["A", "B", "C", "D"][place].to_owned();
        }
        words.join(" ")
    });
    numbered.collect::<Vec<_>>().join("\n").split_once("nandu-index-trace 1\n").unwrap().1.to_owned()
}

#[test]
fn a_file_lives_and_dies() {
    let log = r#"
        5  openat(AT_FDCWD</srv/me/work>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</srv/me/work/a>
        5  write(3</srv/me/work/a>, ""..., 4096) = 4096
        5  write(3</srv/me/work/a>, ""..., 5000) = 5000
        5  close(3</srv/me/work/a>)          = 0
        5  openat(AT_FDCWD</srv/me/work>, "a", O_RDONLY) = 3</srv/me/work/a>
        5  lseek(3</srv/me/work/a>, 8192, SEEK_SET) = 8192
        5  read(3</srv/me/work/a>, ""..., 65536) = 904
        5  close(3</srv/me/work/a>)          = 0
        5  renameat2(AT_FDCWD</srv/me/work>, "a", AT_FDCWD</srv/me/work>, "b", RENAME_NOREPLACE) = 0
        5  unlink("b")                      = 0
        5  newfstatat(AT_FDCWD</srv/me/work>, "b", 0x7ffe, 0) = -1 ENOENT (No such file or directory)"#;
    let trace = "p i 1\nrun\ng n 1 A\np n 1 A\np i 2\np b 2 0-2\np i 2\ng n 1 A\ng i 2\ng b 2 2\ng n 1 A\ng i 2\nd n 1 A\n\
                 p n 1 B\ng n 1 B\ng i 2\nd n 1 B\nd b 2 0-2\nd i 2\ng n 1 B";
    assert_eq!(recorded(log), trace);
}

#[test]
fn a_directory_is_entered_by_a_child_that_inherits_an_open_file() {
    let log = r#"
        5  mkdir("d", 0777)                 = 0
        5  openat(AT_FDCWD</srv/me/work>, "d/log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4</srv/me/work/d/log>
        5  write(4</srv/me/work/d/log>, ""..., 4095) = 4095
        5  vfork( <unfinished ...>
        6  chdir("d")                       = 0
        6  write(4</srv/me/work/d/log>, ""..., 2) = 2
        6  unlink("../d/log")               = 0
        5  <... vfork resumed>)             = 6
        5  rmdir("d")                       = 0"#;
    let trace = "p i 1\nrun\ng n 1 A\np n 1 A\np i 2\ng n 2 B\np n 2 B\np i 3\np b 3 0\np b 3 0-1\ng n 2 B\ng i 3\nd n 2 B\n\
                 d b 3 0-1\nd i 3\ng n 1 A\ng i 2\nd n 1 A\nd i 2";
    assert_eq!(recorded(log), trace);
}

#[test]
fn what_is_found_was_there_before_and_what_is_elsewhere_does_not_count() {
    let log = r#"
        5  openat(AT_FDCWD</srv/me/work>, "/etc/passwd", O_RDONLY) = 3</etc/passwd>
        5  read(3</etc/passwd>, ""..., 4096) = 2000
        5  openat(AT_FDCWD</srv/me/work>, "../workshop/x", O_RDONLY) = 3</srv/me/workshop/x>
        5  newfstatat(AT_FDCWD</srv/me/work>, "s/t", {st_mode=S_IFREG|0644, st_size=9000, ...}, 0) = 0
        5  openat(AT_FDCWD</srv/me/work>, "s", O_RDONLY|O_DIRECTORY) = 4</srv/me/work/s>
        5  getdents64(4</srv/me/work/s>, 0x55 /* 3 entries */, 32768) = 80
        5  getdents64(4</srv/me/work/s>, 0x55 /* 0 entries */, 32768) = 0
        5  pread64(5</srv/me/work/s/t>, ""..., 8192, 4096) = 4904"#;
    let trace =
        "p i 1\np n 1 A\np i 2\np n 2 B\np i 3\np b 3 1-2\nrun\ng n 2 B\ng i 3\ng n 1 A\ng i 2\ns n 2 1\ng b 3 1-2";
    assert_eq!(recorded(log), trace);
}

#[test]
fn a_second_name_keeps_a_file_and_a_file_that_is_replaced_goes() {
    let log = r#"
        5  creat("a", 0666)                 = 3</srv/me/work/a>
        5  creat("b", 0666)                 = 4</srv/me/work/b>
        5  link("a", "c")                   = 0
        5  rename("b", "a")                 = 0
        5  unlink("c")                      = 0
        5  ftruncate(4</srv/me/work/a>, 8192) = 0
        5  pwrite64(4</srv/me/work/a>, ""..., 1, 4096) = 1
        5  ftruncate(4</srv/me/work/a>, 100) = 0"#;
    let trace = "p i 1\nrun\ng n 1 A\np n 1 A\np i 2\ng n 1 B\np n 1 B\np i 3\ng n 1 A\ng i 2\np n 1 C\np i 2\ng n 1 B\ng i 3\n\
                 d n 1 B\np n 1 A\np i 2\ng n 1 C\ng i 2\nd n 1 C\nd i 2\np i 3\np b 3 1\nd b 3 1\np i 3";
    assert_eq!(recorded(log), trace);
}

#[test]
fn nonsense_is_passed_over_and_a_file_that_is_too_large_is_refused() {
    let mut recorder = Recorder::new("/w");
    for line in ["", "x", "5 ", "5 write(", "5 +++ killed by SIGKILL +++", "5 read(99999999999</w/a>, \"\", 1) = 1"] {
        recorder.line(line).unwrap();
    }
    let error = recorder.line("5 pwrite64(3</w/a>, \"\"..., 1, 999999999999) = 1").unwrap_err();
    assert!(matches!(error, BadRecord::FileTooLarge));
}
