//! A mount in the words of `mount(8)` and of `/etc/fstab`: options with commas between them, and the command line that `mount(8)`
//! has for the helper of a type.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Names under which this program is such a helper.
const HELPER_NAMES: [&str; 2] = ["mount.fuse.nandu", "mount.nandu"];

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
                _ => match word.strip_prefix("cache=").map(str::parse) {
                    Some(Ok(size)) => self.cache = Some(size),
                    Some(Err(_)) => return Err(format!("-o {word}: a number of bytes is needed")),
                    None => return Err(format!("-o {word}: there is no such option")),
                },
            }
        }
        Ok(())
    }
}

/// The command line of this program, where it was called as a helper in one of `mount(8)`'s ways: `mount.fuse.nandu IMAGE DIRECTORY
/// [-snv] [-t TYPE] [-o OPTIONS]`. Every other stays as it is.
///
/// `mount(8)` tells a helper of `nosuid` and `nodev` where they are wanted, and nothing where they are not; so for root a mount has neither.
pub(crate) fn command_line(arguments: impl Iterator<Item = OsString>, is_root: bool) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if !name.is_some_and(|name| HELPER_NAMES.iter().any(|helper| name == OsStr::new(helper))) {
        return arguments;
    }
    let mut line = vec![OsString::from("nandu"), OsString::from("mount")];
    if is_root {
        line.extend(["-o", "suid,dev"].map(OsString::from));
    }
    let mut rest = arguments.into_iter().skip(1);
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            // The type is in the name, and what is left out here has no meaning for a mount that is in no table of its own.
            Some("-t") => _ = rest.next(),
            Some(flags)
                if flags.len() > 1
                    && flags.starts_with('-')
                    && flags[1..].bytes().all(|byte| b"snv".contains(&byte)) => {}
            _ => line.push(argument),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Words, command_line};

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
        assert_eq!(line_of("nandu mount a b", true), "nandu mount a b");
        assert_eq!(line_of("mount.nandu a b -o nosuid", true), "nandu mount -o suid,dev a b -o nosuid");
    }
}
