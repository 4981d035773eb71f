//! A strict simulator of raw NAND flash chips.
