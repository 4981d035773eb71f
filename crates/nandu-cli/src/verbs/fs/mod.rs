//! `nandu fs`: a file system on the chip of an image.

mod build;
mod cat;
pub(crate) mod check;
mod df;
mod export;
mod format;
mod import;
mod ls;
mod put;
mod regions;
mod snapshot;

use clap::Subcommand;

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(crate) enum Files {
    /// Make an empty file system on the chip of an image
    Format(format::Format),
    /// Copy a directory of this machine into the file system
    Import(import::Import),
    /// Copy the file system, or a part of it, to a directory of this machine
    Export(export::Export),
    /// List a directory
    Ls(ls::List),
    /// Print the content of a file
    Cat(cat::Cat),
    /// Write a file; it is durable when the command ends
    Put(put::Put),
    /// How full and how worn the file system is
    Df(df::Df),
    /// How many blocks hold one bit in a cell and how many two
    Regions(regions::RegionsArgs),
    /// Keep the file system as it is now, list what is kept, or end that
    Snapshot(snapshot::Keep),
    /// Make the image of a chip that holds the files of a directory, for a NAND writer
    Build(build::Build),
}

pub(crate) fn run(args: &Files, out: &mut Output) -> anyhow::Result<()> {
    match args {
        Files::Format(args) => format::run(args, out),
        Files::Import(args) => import::run(args, out),
        Files::Export(args) => export::run(args, out),
        Files::Ls(args) => ls::run(args, out),
        Files::Cat(args) => cat::run(args, out),
        Files::Put(args) => put::run(args, out),
        Files::Df(args) => df::run(args, out),
        Files::Regions(args) => regions::run(args, out),
        Files::Snapshot(args) => snapshot::run(args, out),
        Files::Build(args) => build::run(args, out),
    }
}
