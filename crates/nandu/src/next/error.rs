//! Errors of the new log and the new tree, as those of a store.

use nandu_newlog::LogError;
use nandu_newtree::EngineError;
use nandu_tree::PageDamage;

use crate::Error;

impl<E: core::error::Error + 'static> From<LogError<E>> for Error<E> {
    fn from(error: LogError<E>) -> Error<E> {
        match error {
            LogError::Nand(error) => Error::Chip(error),
            LogError::Corrupt { page, why } => Error::Corrupt { page, why: PageDamage::Page(why) },
            LogError::Full => Error::Full,
            LogError::Poisoned => Error::Poisoned,
            LogError::NotFormatted => Error::NotFormatted,
            LogError::WrongFormat { what } => Error::OtherFormat { what },
            LogError::Unsuitable { what } => Error::Unsuitable { what },
            LogError::Geometry(error) => Error::Geometry(error),
            LogError::Memory { required } => Error::Memory { required },
            // Of what is not known here, this says least: nothing more is written.
            LogError::ReadOnly | _ => Error::ReadOnly,
        }
    }
}

impl<E: core::error::Error + 'static> From<EngineError<E>> for Error<E> {
    fn from(error: EngineError<E>) -> Error<E> {
        match error {
            EngineError::Log(error) => Error::from(error),
            EngineError::Corrupt { page, why } => Error::Corrupt { page, why: PageDamage::Node(why) },
            EngineError::OtherFormat => Error::OtherFormat { what: "cells" },
            EngineError::Memory { required } => Error::Memory { required },
            EngineError::PageSize(_) => Error::Unsuitable { what: "pages of this size" },
            EngineError::KeySize(size) => Error::KeySize(size),
            EngineError::ReservedKey => Error::ReservedKey,
            EngineError::TooManySnapshots => Error::TooManySnapshots,
            EngineError::NoSnapshot(number) => Error::NoSnapshot(number),
            EngineError::ValueSize(size) => Error::ValueSize(size),
            EngineError::LargeValue(size) => Error::LargeValue(size),
            EngineError::NotAscending(index) => Error::NotAscending(index),
            EngineError::BatchTooLarge { .. } => Error::BatchSize,
            EngineError::PendingSize => Error::PendingSize,
            EngineError::TooHigh => Error::TooHigh,
            EngineError::NotCompiled { feature } => Error::NotCompiled { feature },
            // The tree says nothing else yet.
            _ => Error::ReadOnly,
        }
    }
}
