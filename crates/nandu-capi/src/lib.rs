//! The interface of nandu for C and C++: `include/nandu.h`, which has its documentation.
//!
//! **For** programs in C and C++. `cargo xtask capi --install` builds the library; nothing here is meant for Rust.
//!
//! ```c
//! #include <nandu.h>
//!
//! static uint8_t memory[NANDU_STORE_MEMORY(2048, 1024, 8192, 0)];
//!
//! nandu_store *store;
//! int error = nandu_store_open(&store, &chip, NULL, memory, sizeof memory);
//! if (error == 0)
//!     error = nandu_store_put(store, "lamp/kitchen", 12, "on", 2); /* durable when it returns */
//! ```
//!
//! **The key decision** is that a handle lies in the caller's memory, at the front of what the store or file system is handed. So a program hands over one
//! buffer, static or not, and there is neither a heap nor a table of handles. The alternative, numbers that lead into a table of
//! this crate, would be global state, with a limit to how many volumes there can be. It was refused.
//!
//! Pointers come from C, so there is unsafe code. It stands in four modules: `border` turns what C passes into
//! slices and references, `volume` puts a store with its chip into the caller's memory, `chip` calls the callbacks, and `sim` lends a simulated
//! chip to C, where there is one. Where there is no standard library, `panic` calls the program's own function. The others are safe,
//! but for the names that they export.
//!
//! Features are those of the crate `nandu`; `std` is for hosts, and `sim`, with the simulator, needs it. Without `std` the crate takes a
//! profile whose panics abort, as `capi` in the manifest of the workspace is.

#![no_std]

#[cfg(feature = "std")]
extern crate std;

mod border;
mod chip;
mod cursor;
#[cfg(feature = "files")]
mod dir;
mod error;
#[cfg(feature = "files")]
mod file;
#[cfg(feature = "files")]
mod fs;
#[cfg(test)]
#[cfg(all(feature = "sim", feature = "mlc", feature = "snapshots"))]
mod header_tests;
#[cfg(not(feature = "std"))]
mod panic;
mod report;
#[cfg(feature = "sim")]
mod sim;
#[cfg(feature = "snapshots")]
mod snapshots;
mod stats;
mod store;
mod volume;
