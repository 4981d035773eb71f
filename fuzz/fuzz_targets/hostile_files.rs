//! Mounts and uses damaged images of file systems.

#![no_main]

#[path = "../files.rs"]
mod files;
#[expect(dead_code, reason = "what is shared with the target of stores")]
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    files::hostile_files(bytes);
});
