//! This program in the words of `/etc/fstab` and of who reads it: mount options with commas between them, and the command lines and exit
//! codes that `mount(8)`, `fsck(8)` and `mkfs(8)` have for the programs of a type.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What this program is called as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// By its own name, or any other that means nothing.
    Command,
    /// `mount.nandu IMAGE DIRECTORY [-snv] [-t TYPE] [-o OPTIONS]`, which `mount -t nandu` calls.
    Mount,
    /// `fsck.nandu [OPTIONS] IMAGE`, which `fsck` calls.
    Check,
    /// `mkfs.nandu [OPTIONS] IMAGE`, which `mkfs -t nandu` calls.
    Make,
}

/// How a command ended, as far as whoever called it by a role needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Usage,
    Failed,
}

impl Role {
    pub(crate) fn of(arguments: &[OsString]) -> Role {
        let name = arguments.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
        match name {
            Some("mount.nandu" | "mount.fuse.nandu") => Role::Mount,
            Some("fsck.nandu" | "fsck.fuse.nandu") => Role::Check,
            Some("mkfs.nandu" | "mkfs.fuse.nandu") => Role::Make,
            _ => Role::Command,
        }
    }

    /// The role of this process.
    pub(crate) fn here() -> Role {
        Role::of(&std::env::args_os().take(1).collect::<Vec<_>>())
    }

    /// The exit code for an end that chose none itself, as `mount(8)` and `fsck(8)` list them.
    pub(crate) fn code(self, end: End) -> u8 {
        match (self, end) {
            (Role::Command, End::Usage) => 2,
            (Role::Command | Role::Make, _) | (Role::Mount, End::Usage) => 1,
            (Role::Mount, End::Failed) => 32,
            (Role::Check, End::Usage) => 16,
            (Role::Check, End::Failed) => 8,
        }
    }
}

/// What `mount(8)` keeps for itself, or what is always so.
const WITHOUT_MEANING: [&str; 18] = [
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "nousers",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "async",
    "default_permissions",
    "diratime",
    "nodiratime",
    "lazytime",
    "nolazytime",
    "silent",
];

/// What begins such words. Those behind the names of users are what the list of mounts has of a mount that is changed.
const PREFIXES_WITHOUT_MEANING: [&str; 10] =
    ["x-", "X-", "comment=", "user=", "uhelper=", "user_id=", "group_id=", "rootmode=", "fd=", "max_read="];

/// What options say, the last one of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) ro: bool,
    pub(crate) noatime: bool,
    pub(crate) allow_other: bool,
    pub(crate) suid: bool,
    pub(crate) dev: bool,
    pub(crate) noexec: bool,
    /// The directory is a mount already, which changes its flags.
    pub(crate) remount: bool,
    pub(crate) cache: Option<u32>,
    /// The snapshot that is shown.
    pub(crate) at: Option<u32>,
}

impl Words {
    /// Takes over what an option's text says.
    pub(crate) fn take(&mut self, text: &str) -> Result<(), String> {
        for word in text.split(',') {
            match word {
                "" => {}
                "ro" => self.ro = true,
                "rw" => self.ro = false,
                "noatime" => self.noatime = true,
                "atime" | "relatime" => self.noatime = false,
                "allow_other" => self.allow_other = true,
                "suid" => self.suid = true,
                "nosuid" => self.suid = false,
                "dev" => self.dev = true,
                "nodev" => self.dev = false,
                "noexec" => self.noexec = true,
                "exec" => self.noexec = false,
                "remount" => self.remount = true,
                _ if WITHOUT_MEANING.contains(&word) => {}
                _ if PREFIXES_WITHOUT_MEANING.iter().any(|prefix| word.starts_with(prefix)) => {}
                _ => self.take_number(word)?,
            }
        }
        Ok(())
    }

    /// Takes over an option with a number.
    fn take_number(&mut self, word: &str) -> Result<(), String> {
        let (place, what) = match word.split_once('=') {
            Some(("cache", _)) => (&mut self.cache, "a number of bytes"),
            Some(("at", _)) => (&mut self.at, "the number of a snapshot"),
            _ => return Err(format!("-o {word}: there is no such option")),
        };
        let number = word.split_once('=').and_then(|(_, number)| number.parse().ok());
        *place = Some(number.ok_or_else(|| format!("-o {word}: {what} is needed"))?);
        Ok(())
    }
}

/// The command line of this program by its own name, where it was called in another [`Role`]. Every other stays as it is.
///
/// `mount(8)` tells a helper of `nosuid` and `nodev` where they are wanted, and nothing where they are not; so for root a mount has neither.
pub(crate) fn command_line(arguments: impl Iterator<Item = OsString>, is_root: bool) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    let words: &[&str] = match Role::of(&arguments) {
        Role::Command => return arguments,
        Role::Mount if is_root => &["nandu", "mount", "-o", "suid,dev"],
        Role::Mount => &["nandu", "mount"],
        Role::Check => &["nandu", "check"],
        Role::Make => &["nandu", "fs", "format"],
    };
    let role = Role::of(&arguments);
    let mut line: Vec<OsString> = words.iter().map(OsString::from).collect();
    let mut rest = arguments.into_iter().skip(1);
    while let Some(argument) = rest.next() {
        match (role, argument.to_str()) {
            // The type is in the name, and what is left out here has no meaning for a mount that is in no table of its own.
            (Role::Mount, Some("-t")) => _ = rest.next(),
            (Role::Mount, Some(flags)) if is_made_of(flags, b"snv") => {}
            // Repair without questions, which there are none of anyway.
            (Role::Check, Some("-a" | "-p" | "-y")) => line.push("-y".into()),
            // Check though it was left cleanly, talk, ask: it always does the first, and never the others. Nor does it draw a bar.
            (Role::Check, Some(flags)) if is_made_of(flags, b"fvVrtTMl") || flags.starts_with("-C") => {}
            (Role::Make, Some("-f" | "-F")) => line.push("--force".into()),
            (Role::Make, Some(flags)) if is_made_of(flags, b"vqV") => {}
            _ => line.push(argument),
        }
    }
    line
}

/// Whether an argument is nothing but some of these letters behind a minus.
fn is_made_of(argument: &str, letters: &[u8]) -> bool {
    let flags = argument.strip_prefix('-').unwrap_or_default();
    !flags.is_empty() && flags.bytes().all(|byte| letters.contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{End, Role, Words, command_line};

    fn words(text: &str) -> Result<Words, String> {
        let mut words = Words::default();
        words.take(text).map(|()| words)
    }

    #[test]
    fn the_last_of_two_words_counts_and_those_of_mount_itself_do_not() {
        let nothing = Words::default();
        assert_eq!(words(""), Ok(nothing));
        assert_eq!(words("defaults,rw,nofail,_netdev,x-systemd.automount,user=me,relatime"), Ok(nothing));
        assert_eq!(words("user_id=0,group_id=0,default_permissions"), Ok(nothing));
        assert_eq!(words("ro,noatime,rw"), Ok(Words { noatime: true, ..nothing }));
        assert_eq!(words("suid,dev,noexec,nosuid"), Ok(Words { dev: true, noexec: true, ..nothing }));
        let all = Words { ro: true, allow_other: true, remount: true, cache: Some(4096), ..nothing };
        assert_eq!(words("ro,allow_other,cache=4096,remount"), Ok(all));
        assert!(words("ro,sideways").is_err_and(|why| why.contains("sideways")));
        assert!(words("cache=much").is_err());
        assert_eq!(words("at=3,noatime"), Ok(Words { noatime: true, at: Some(3), ..nothing }));
        assert!(words("at=noon").is_err_and(|why| why.contains("the number of a snapshot")));
    }

    #[test]
    fn exit_codes_are_those_of_who_calls() {
        let codes = |name: &str| {
            let role = Role::of(&[OsString::from(name)]);
            (role.code(End::Usage), role.code(End::Failed))
        };
        assert_eq!(codes("nandu"), (2, 1));
        assert_eq!(codes("/sbin/mount.nandu"), (1, 32));
        assert_eq!(codes("fsck.nandu"), (16, 8));
        assert_eq!(codes("mkfs.nandu"), (1, 1));
    }

    #[test]
    fn the_line_of_a_helper_becomes_that_of_the_verb() {
        let line_of = |text: &str, is_root| {
            let line = command_line(text.split(' ').map(OsString::from), is_root);
            line.into_iter().map(|word| word.into_string().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        };
        let line = |text| line_of(text, false);
        assert_eq!(line("nandu mount a b -o ro"), "nandu mount a b -o ro");
        assert_eq!(line("/sbin/mount.fuse.nandu a b -o rw,dev"), "nandu mount a b -o rw,dev");
        assert_eq!(line("mount.nandu a b -sn -v -t fuse.nandu -o ro"), "nandu mount a b -o ro");
        assert_eq!(line("mount.nandu -h"), "nandu mount -h");
        assert_eq!(line("/sbin/fsck.nandu -a -C0 -f /dev/mtd3"), "nandu check -y /dev/mtd3");
        assert_eq!(line("fsck.nandu -n a"), "nandu check -n a");
        assert_eq!(line("/usr/sbin/mkfs.nandu -q -f a --slc"), "nandu fs format --force a --slc");
        assert_eq!(line_of("nandu mount a b", true), "nandu mount a b");
        assert_eq!(line_of("mount.nandu a b -o nosuid", true), "nandu mount -o suid,dev a b -o nosuid");
    }
}
