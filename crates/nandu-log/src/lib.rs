//! An append-only log over raw NAND blocks.
#![no_std]
