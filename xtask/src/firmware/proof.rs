//! A store and files on an SPI NAND part through the driver, with power cuts, in an emulated Cortex-M4 and M7.
//!
//! The program is that of `firmware/proof`; it panics on whatever is wrong.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use super::budget::{Measured, crates_of, linked_size};
use super::emulator::{self, M4, M7, output};
use super::{TARGET, target, toolchain};
use crate::outcome::Outcome;

/// What is printed of a core: what it is, and under which name the program says it.
const ROWS: [(&str, &str); 10] = [
    ("instructions of a put", "put_instructions"),
    ("instructions of a get", "get_instructions"),
    ("store: stack of format and open", "store_stack_open"),
    ("store: stack of other calls", "store_stack_call"),
    ("store: cuts survived", "store_cuts"),
    ("files: stack of format and mount", "files_stack_open"),
    ("files: stack of other calls", "files_stack_call"),
    ("files: cuts survived", "files_cuts"),
    ("programs", "programs"),
    ("erases", "erases"),
];

/// Whose memory is added up to RAM.
const USES: [&str; 2] = ["store", "files"];

/// Builds the program, runs it on both cores and prints what it took. The short form has a fifth of the cuts.
pub(super) fn run(root: &Path, is_short: bool) -> Result<Outcome, String> {
    let start = Instant::now();
    let program = build(root, is_short)?;
    let sizes = output(Command::new("size").args(["-A", "-d"]).arg(&program))?;
    println!("{TARGET}: {} bytes of code and constants, with the program and its part", linked_size(&sizes));
    println!("  functions by crate: {}", crates_of(&program)?);
    if !emulator::is_there() {
        return Ok(Outcome::Lacks(format!("{} is missing: the program was built and not run", emulator::NAME)));
    }
    let on_m4 = thread::scope(|scope| {
        let other = scope.spawn(|| prove(&program, M4, 4));
        let on_m7 = prove(&program, M7, 7);
        (other.join().unwrap_or_else(|_| Err("the run on Cortex-M4 panicked".to_owned())), on_m7)
    });
    let cores = [on_m4.0?, on_m4.1?];
    print!("{}", table(&cores)?);
    println!("run on both in {:.0} s", start.elapsed().as_secs_f64());
    Ok(Outcome::Ran)
}

fn build(root: &Path, is_short: bool) -> Result<std::path::PathBuf, String> {
    let folder = root.join("firmware");
    let target = target(root);
    let mut command = toolchain(&folder)?;
    command
        .args(["build", "--quiet", "--release", "--locked", "--target", TARGET, "--package", "nandu-proof"])
        .args(if is_short { &["--features", "short"][..] } else { &[] })
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", &target);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target.join(TARGET).join("release").join("proof"))
    } else {
        Err(format!("firmware/proof does not build: {status}"))
    }
}

fn prove(program: &Path, machine: &str, core: u64) -> Result<Measured, String> {
    let mut measured = Measured::default();
    measured.read(&output(&mut emulator::run_counted(machine, program))?);
    emulator::check_trial(measured.get("trial"))?;
    if measured.get("core") == Some(core) { Ok(measured) } else { Err(format!("{machine} is no Cortex-M{core}")) }
}

/// The figures of both cores. RAM is the memory handed over, the struct and the deepest stack.
fn table(cores: &[Measured; 2]) -> Result<String, String> {
    let mut lines = format!("  {:<32} {:>9} {:>9}\n", "", "Cortex-M4", "Cortex-M7");
    let mut add = |title: &str, value: &dyn Fn(&Measured) -> Option<u64>| {
        let [m4, m7] = cores.each_ref().map(value);
        let (Some(m4), Some(m7)) = (m4, m7) else { return Err(format!("the program does not say: {title}")) };
        lines += &format!("  {title:<32} {m4:>9} {m7:>9}\n");
        Ok(())
    };
    for (title, name) in ROWS {
        add(title, &|measured| measured.get(name))?;
    }
    for which in USES {
        add(&format!("{which}: RAM"), &|measured| {
            let part = |name: &str| measured.get(&format!("{which}_{name}"));
            Some(part("memory")? + part("struct")? + part("stack_open")?.max(part("stack_call")?))
        })?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
core 4
put_instructions 44000
get_instructions 12000
store_stack_open 12000 open
store_stack_call 13000 put
files_stack_open 16000 mount
files_stack_call 13000 write
store_cuts 200
files_cuts 120
programs 1
erases 1
store_memory 15000
store_struct 5000
files_memory 24000
files_struct 6000
";

    fn measured(said: &str) -> Measured {
        let mut measured = Measured::default();
        measured.read(said);
        measured
    }

    #[test]
    fn ram_is_memory_struct_and_the_deepest_stack() {
        let table = table(&[measured(SAID), measured(SAID)]).unwrap();
        assert!(table.contains("store: RAM                           33000     33000"), "{table}");
        assert!(table.contains("files: RAM                           46000     46000"), "{table}");
    }

    #[test]
    fn a_program_that_ends_before_its_time_has_proved_nothing() {
        let (short, _) = SAID.split_once("files_cuts").unwrap();
        assert!(table(&[measured(SAID), measured(short)]).is_err());
    }
}
