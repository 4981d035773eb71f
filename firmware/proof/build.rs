//! Tells the linker where the memories are: where both boards have them, which `memory.x` of the budgets says.

fn main() {
    println!("cargo:rustc-link-search={}/../budget", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    println!("cargo:rerun-if-changed=../budget/memory.x");
}
