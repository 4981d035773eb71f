//! One file, one verb.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod chip;
pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod device_info;
pub(crate) mod digest;
pub(crate) mod dump;
pub(crate) mod fs;
pub(crate) mod info;
pub(crate) mod kv;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod map;
pub(crate) mod mount;
pub(crate) mod raw;
pub(crate) mod tour;
pub(crate) mod trace;

use crate::args::Verb;
use crate::output::Output;

/// Carries out a verb.
pub(crate) fn run(verb: &Verb, out: &mut Output) -> anyhow::Result<()> {
    match verb {
        Verb::Tour(args) => tour::run(args, out),
        Verb::Chip(args) => chip::run(args, out),
        Verb::Create(args) => create::run(args, out),
        Verb::Info(args) => info::run(args, out),
        Verb::Map(args) => map::run(args, out),
        Verb::Kv(args) => kv::run(args, out),
        Verb::Fs(args) => fs::run(args, out),
        Verb::Mount(args) => mount::run(args, out),
        Verb::Backup(args) => backup::run(args, out),
        Verb::Check(args) => check::run(args, out),
        Verb::Digest(args) => digest::run(args, out),
        Verb::Dump(args) => dump::run(args, out),
        Verb::Raw(args) => raw::run(args, out),
        Verb::Trace(args) => trace::run(args, out),
        Verb::Lab(args) => lab::run(args, out),
        Verb::Completions(args) => completions::run(args, out),
        Verb::Man(args) => man::run(args, out),
    }
}
