//! The command line: what all verbs share, and the list of verbs.

use clap::{Args, Parser, Subcommand};

use crate::failure::Failure;
use crate::fstab;
use crate::verbs::{
    backup, check, chip, completions, create, digest, dump, fs, info, kv, lab, man, map, mount, raw, tour, trace,
};

const AFTER_HELP: &str = "\
Where an image is taken, so is an MTD device of Linux: /dev/mtdN, or mtd:NAME.
What its chip is rated for: NANDU_MTD_ENDURANCE, NANDU_MTD_BAD_BLOCKS.

Exit codes:
  0  done
  1  failed: an image or device that is damaged or in use, a full disk, a trace that does not repeat
  2  wrong use: the command line asks for something that cannot be asked for
  3  lab compare found something worse, or lab run --strict something missed
  4  check found errors; 1 if it repaired them, 8 if it could not be done";

/// NAND flash: simulated chips, kept in image files, and MTD devices
#[derive(Debug, Parser)]
#[command(name = "nandu", version, after_help = AFTER_HELP, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb understands.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Print JSON: one object, or one a line for each item of a list
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// See in half a minute what the store does, with the files of this machine as records
    Tour(tour::Tour),
    /// Kinds of chips that can be simulated
    #[command(subcommand)]
    Chip(chip::Chip),
    /// Make an image of a new chip
    Create(create::Create),
    /// What an image or a device holds: geometry, bad blocks, costs so far, wear
    Info(info::Info),
    /// The blocks of an image by state and wear
    Map(map::Map),
    /// Keep ordered records on the chip of an image
    #[command(subcommand)]
    Kv(kv::Kv),
    /// Keep files on the chip of an image
    #[command(subcommand)]
    Fs(fs::Files),
    /// Show the file system of an image as a directory
    Mount(mount::Mount),
    /// Copy an image that may be mounted
    Backup(backup::Backup),
    /// Check every invariant of what an image holds; repair a file system
    Check(check::Check),
    /// 64 bits over all records or files that an image holds, to keep elsewhere and compare
    ///
    /// Two images with the same records, or the same files, have one digest, whatever was done to them and on whatever chips. Of
    /// files all counts but times and numbers of inodes. It notices accidents, and not attackers.
    Digest(digest::Digest),
    /// Show the bytes of a page
    #[command(subcommand)]
    Dump(dump::Dump),
    /// Read, program and erase by hand
    #[command(subcommand)]
    Raw(raw::Raw),
    /// Work with records of operations
    #[command(subcommand)]
    Trace(trace::Trace),
    /// Run experiments on simulated chips
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Print the completion script for a shell
    Completions(completions::Completions),
    /// Print the manual page, or write the pages of all verbs to a directory
    Man(man::Man),
}

/// The command line as given; help, and wrong use, are failures to report.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    Cli::try_parse_from(fstab::command_line(std::env::args_os(), is_root)).map_err(Failure::from)
}
