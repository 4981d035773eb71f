//! Mounts and uses damaged images of DFFS.

#![no_main]

#[path = "../dffs.rs"]
mod dffs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    dffs::hostile_dffs(bytes);
});
