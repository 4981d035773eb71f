//! A folder with headers, libraries, and files for pkg-config and CMake.

use std::fs;
use std::path::{Path, PathBuf};

use super::CRATE;

/// The version of the interface of the shared library, which its name has.
const SONAME: &str = "libnandu.so.0";

/// Where the library is put.
pub(super) struct Prefix<'a> {
    crate_folder: PathBuf,
    folder: &'a Path,
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

impl Prefix<'_> {
    pub(super) fn new<'a>(root: &Path, folder: &'a Path) -> Prefix<'a> {
        Prefix { crate_folder: root.join(CRATE), folder }
    }

    /// Puts everything there, with the simulator.
    pub(super) fn install_for_this_machine(&self, libraries: &Path) -> Result<(), String> {
        self.headers(&["nandu.h", "nandu_sim.h", "nandu_dhara.h"])?;
        self.copy(&libraries.join("libnandu_capi.a"), "lib/libnandu.a")?;
        self.copy(&libraries.join("libnandu_capi.so"), &format!("lib/{SONAME}"))?;
        let link = self.folder.join("lib/libnandu.so");
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link).map_err(|error| failed(&link, &error))?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(SONAME, &link).map_err(|error| failed(&link, &error))?;
        self.packages("nandu.pc.in", "nandu-config.cmake", &[])
    }

    /// Puts a static library for firmware there.
    pub(super) fn install_for_firmware(&self, library: &[u8], target: &str, features: &str) -> Result<(), String> {
        self.headers(&["nandu.h", "nandu_dhara.h"])?;
        self.write("lib/libnandu.a", library)?;
        self.packages(
            "nandu-firmware.pc.in",
            "nandu-firmware-config.cmake.in",
            &[("@TARGET@", target), ("@FEATURES@", features)],
        )
    }

    fn headers(&self, names: &[&str]) -> Result<(), String> {
        names
            .iter()
            .try_for_each(|name| self.copy(&self.crate_folder.join("include").join(name), &format!("include/{name}")))
    }

    fn packages(&self, pkg_config: &str, cmake: &str, values: &[(&str, &str)]) -> Result<(), String> {
        let absolute = self.folder.canonicalize().map_err(|error| failed(self.folder, &error))?;
        for (template, to) in [
            (pkg_config, "lib/pkgconfig/nandu.pc"),
            (cmake, "lib/cmake/nandu/nandu-config.cmake"),
            ("nandu-config-version.cmake.in", "lib/cmake/nandu/nandu-config-version.cmake"),
        ] {
            let from = self.crate_folder.join("package").join(template);
            let mut text = fs::read_to_string(&from).map_err(|error| failed(&from, &error))?;
            let prefix = absolute.to_string_lossy();
            for (name, value) in [("@PREFIX@", &*prefix), ("@VERSION@", env!("CARGO_PKG_VERSION"))].iter().chain(values)
            {
                text = text.replace(name, value);
            }
            self.write(to, text.as_bytes())?;
        }
        println!("installed in {}", absolute.display());
        Ok(())
    }

    fn copy(&self, from: &Path, to: &str) -> Result<(), String> {
        self.write(to, &fs::read(from).map_err(|error| failed(from, &error))?)
    }

    /// Writes a file, unless it is the same already: then nothing that was built with it has to be built again.
    fn write(&self, to: &str, bytes: &[u8]) -> Result<(), String> {
        let to = self.folder.join(to);
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        }
        fs::write(&to, bytes).map_err(|error| failed(&to, &error))
    }
}
