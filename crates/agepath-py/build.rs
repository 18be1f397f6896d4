//! Fingerprints of the library's sources, so that results can say which part of the engine they depend on.

use std::path::{Path, PathBuf};

/// Parts that only paths and what is made of them read; the rivals do without.
const PATH_ONLY: &[&str] = &["path", "judge", "suspects", "report", "select", "decide.rs", "one_vs_rest.rs", "lib.rs"];

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../agepath/src");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let whole = fingerprint(&root, &files, |_| true);
    let rivals = fingerprint(&root, &files, |top| !PATH_ONLY.contains(&top));
    println!("cargo:rustc-env=AGEPATH_FINGERPRINT_PATH={whole:016x}");
    println!("cargo:rustc-env=AGEPATH_FINGERPRINT_RIVALS={rivals:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// FNV-1a over names and contents of the files that `wanted` takes, by the first part of their names.
fn fingerprint(root: &Path, files: &[PathBuf], wanted: impl Fn(&str) -> bool) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(file);
        let top = name.iter().next().and_then(|part| part.to_str()).unwrap_or("");
        if wanted(top) {
            add(name.to_string_lossy().replace('\\', "/").as_bytes());
            add(&std::fs::read(file).unwrap_or_default());
        }
    }
    hash
}
