//! A result on disk is one result, whatever happens while it is written, and is refused when it is not.

mod common;

use common::{agepath, command};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const FILES: [&str; 7] =
    ["manifest.json", "model.json", "path.json", "report.html", "summary.json", "suspects.csv", "train.npz"];

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Rows of `classes` classes, or numbers.
fn table(classes: usize) -> String {
    let row = |i: usize| {
        let (a, b) = ((i * 7 % 23) as f64 / 3.0, (i * 5 % 19) as f64 / 4.0);
        match classes {
            0 => format!("{a},{b},{}\n", 3.0 * a - b + (i % 4) as f64 + if i.is_multiple_of(9) { 30.0 } else { 0.0 }),
            k => format!("{},{},c{}\n", a + 3.0 * (i % k) as f64, b - 2.0 * (i % k) as f64, i % k),
        }
    };
    "a,b,y\n".to_owned() + &(0..120).map(row).collect::<String>()
}

fn compute(dir: &Path, out: &str, classes: usize, seed: &str) {
    let arguments = ["path", "-", "-o", out, "--quiet", "--seed", seed, "--validation", "0.25"];
    let ran = agepath(dir, &arguments, table(classes).as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// One way of spoiling a result, and a word of the message it must give.
type Spoil = (&'static str, fn(&Path), &'static str);

fn edit(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

/// Replaces the first digit after `key` by another.
fn other_digit(file: &Path, key: &str) {
    edit(file, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let from = text.find(key).unwrap() + key.len();
        let at = from + text[from..].find(|c: char| c.is_ascii_digit()).unwrap();
        bytes[at] = if bytes[at] == b'7' { b'3' } else { b'7' };
    });
}

const SPOILS: &[Spoil] = &[
    ("another age", |d| other_digit(&d.join("model.json"), "\"age\":"), "model.json was changed"),
    ("another coefficient", |d| other_digit(&d.join("path.json"), "\"coef\":"), "path.json was changed"),
    ("cut path", |d| edit(&d.join("path.json"), |b| b.truncate(b.len() / 2)), "path.json is cut off"),
    ("cut rows", |d| edit(&d.join("train.npz"), |b| b.truncate(b.len() - 1)), "train.npz is cut off"),
    ("cut model", |d| edit(&d.join("model.json"), |b| b.truncate(20)), "model.json is cut off"),
    ("a bit of the rows", |d| edit(&d.join("train.npz"), |b| b[200] ^= 4), "train.npz was changed"),
    ("more rows", |d| edit(&d.join("train.npz"), |b| b.push(0)), "train.npz was changed"),
    ("no rows", |d| fs::remove_file(d.join("train.npz")).unwrap(), "train.npz is missing"),
    ("no path", |d| fs::remove_file(d.join("path.json")).unwrap(), "path.json is missing"),
    ("no model", |d| fs::remove_file(d.join("model.json")).unwrap(), "model.json is missing"),
    ("no manifest", |d| fs::remove_file(d.join("manifest.json")).unwrap(), "manifest.json is missing"),
    ("half a manifest", |d| edit(&d.join("manifest.json"), |b| b.truncate(90)), "manifest.json"),
    ("a later format", |d| other_digit(&d.join("manifest.json"), "agepath.result/"), "agepath.result/7"),
    ("no knots", |d| edit(&d.join("path.json"), |b| *b = b"{\"knots\": []}".to_vec()), "path.json is cut off"),
];

#[test]
fn what_one_run_did_not_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let new_rows = b"a,b\n1,2\n";
    for (name, spoil, word) in SPOILS {
        compute(dir.path(), "out", 0, "1");
        assert_eq!(agepath(dir.path(), &["predict", "out", "-"], new_rows).code, 0);
        spoil(&dir.path().join("out"));
        let predicted = agepath(dir.path(), &["predict", "out", "-"], new_rows);
        assert_eq!((predicted.code, predicted.stdout.as_str()), (1, ""), "{name}: {predicted:?}");
        assert!(predicted.stderr.contains(word) && !predicted.stderr.contains("panicked"), "{name}: {predicted:?}");
        // `at` does not need the model.
        if !word.starts_with("model.json") {
            let at = agepath(dir.path(), &["at", "out", "--age", "2"], b"");
            assert_eq!((at.code, at.stdout.as_str()), (1, ""), "{name}: {at:?}");
            assert!(at.stderr.contains(word), "{name}: {at:?}");
        }
    }
}

#[test]
fn files_of_two_runs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["path.json", "train.npz", "model.json", "manifest.json"] {
        compute(dir.path(), "out", 0, "1");
        compute(dir.path(), "other", 0, "2");
        fs::copy(dir.path().join("other").join(file), dir.path().join("out").join(file)).unwrap();
        let predicted = agepath(dir.path(), &["predict", "out", "-"], b"a,b\n1,2\n");
        assert_eq!((predicted.code, predicted.stdout.as_str()), (1, ""), "{file}: {predicted:?}");
        assert!(predicted.stderr.contains("not a whole result"), "{predicted:?}");
    }
    // Of several classes, too: the directory of one class from another run.
    compute(dir.path(), "many", 3, "1");
    compute(dir.path(), "more", 3, "2");
    fs::remove_dir_all(dir.path().join("many/class-1")).unwrap();
    fs::rename(dir.path().join("more/class-1"), dir.path().join("many/class-1")).unwrap();
    let predicted = agepath(dir.path(), &["predict", "many", "-"], b"a,b\n1,2\n");
    assert!(predicted.code == 1 && predicted.stderr.contains("class-1/manifest.json"), "{predicted:?}");
}

#[test]
fn nothing_of_an_earlier_result_stays_and_nothing_else_goes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    compute(dir.path(), "out", 4, "1");
    fs::write(out.join("notes.txt"), "mine").unwrap();
    fs::create_dir(out.join("figures")).unwrap();
    fs::write(out.join("figures/a.txt"), "mine too").unwrap();
    fs::write(out.join("class-2/look.txt"), "and this").unwrap();
    assert!(out.join("class-3/path.json").exists());
    compute(dir.path(), "out", 3, "1");
    assert!(!out.join("class-3").exists() && out.join("class-2/path.json").exists());
    compute(dir.path(), "out", 2, "1");
    assert!(!out.join("class-0").exists() && out.join("train.npz").exists());
    compute(dir.path(), "out", 0, "1");
    let mut expected: Vec<&str> = [&FILES[..], &["class-2", "figures", "notes.txt"]].concat();
    expected.sort_unstable();
    assert_eq!(names(&out), expected);
    assert_eq!(names(&out.join("class-2")), ["look.txt"]);
    assert_eq!(fs::read_to_string(out.join("figures/a.txt")).unwrap(), "mine too");
    compute(dir.path(), "out", 3, "1");
    assert!(!out.join("train.npz").exists() && out.join("notes.txt").exists());
    assert_eq!(fs::read_to_string(out.join("class-2/look.txt")).unwrap(), "and this");
    assert_eq!(agepath(dir.path(), &["predict", "out", "-"], b"a,b\n1,2\n").code, 0);
    assert_eq!(names(dir.path()), ["out"], "nothing is left beside it");
}

#[test]
fn other_directories_are_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("photos");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("beach.jpg"), "x").unwrap();
    fs::write(out.join("path.json"), "[1, 2]").unwrap();
    let arguments = ["path", "-", "-o", "photos", "--quiet"];
    let refused = agepath(dir.path(), &arguments, table(0).as_bytes());
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("beach.jpg") && refused.stderr.contains("--force"), "{refused:?}");
    assert_eq!(names(&out), ["beach.jpg", "path.json"]);
    let forced = agepath(dir.path(), &[&arguments[..], &["--force"]].concat(), table(0).as_bytes());
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(out.join("beach.jpg").exists() && out.join("manifest.json").exists());
    // Now it holds a result.
    assert_eq!(agepath(dir.path(), &arguments, table(0).as_bytes()).code, 0);
}

/// The directory one works in must not be pulled away, and links stay links.
#[cfg(unix)]
#[test]
fn the_own_directory_and_links_are_written_in_place() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("here");
    fs::create_dir(&here).unwrap();
    let inode = fs::metadata(&here).unwrap().ino();
    for classes in [3, 0, 2] {
        compute(&here, ".", classes, "1");
        assert_eq!(fs::metadata(&here).unwrap().ino(), inode);
        let predicted = agepath(&here, &["predict", ".", "-"], b"a,b\n1,2\n");
        assert_eq!(predicted.code, 0, "{predicted:?}");
        assert_eq!(here.join("class-0").exists(), classes == 3);
    }
    assert_eq!(names(&here), FILES);
    std::os::unix::fs::symlink("here", dir.path().join("link")).unwrap();
    compute(dir.path(), "link", 0, "1");
    assert!(fs::symlink_metadata(dir.path().join("link")).unwrap().is_symlink());
    assert_eq!(names(&here), FILES);
    assert_eq!(names(dir.path()), ["here", "link"]);
}

/// Written by version 0.1.0 before there were manifests.
fn old_result(dir: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/old-result");
    fs::create_dir(dir).unwrap();
    for name in names(&source) {
        fs::copy(source.join(&name), dir.join(&name)).unwrap();
    }
}

#[test]
fn results_of_earlier_versions_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_result(&out);
    let at = agepath(dir.path(), &["at", "out", "--age", "2"], b"");
    assert_eq!(at.code, 0, "{at:?}");
    let point: Value = serde_json::from_str(&at.stdout).unwrap();
    assert!(point["kkt"].as_f64().unwrap() < 1e-9, "{point}");
    let predicted = agepath(dir.path(), &["predict", "out", "-"], b"a,b\n1,2\n");
    assert_eq!((predicted.code, predicted.stdout.lines().count()), (0, 2), "{predicted:?}");
    // And replaced.
    compute(dir.path(), "out", 0, "1");
    assert_eq!(names(&out), FILES);
}

#[test]
fn spoiled_results_of_earlier_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    type Change = fn(&mut Value);
    let spoils: [(&str, Change); 8] = [
        ("path.json", |v| v["knots"] = serde_json::json!([])),
        ("path.json", |v| v["ages"] = serde_json::json!([-1.0, 5.0])),
        ("path.json", |v| v["problem"]["y_scale"] = serde_json::json!(0.0)),
        ("path.json", |v| v["problem"]["rows"] = serde_json::json!([1, 2, 3])),
        ("path.json", |v| v["problem"]["x_mean"][0] = serde_json::json!(1e9)),
        ("path.json", |v| v["problem"]["loss"] = serde_json::json!("hinge")),
        ("model.json", |v| v["age"] = serde_json::json!(3.21)),
        ("model.json", |v| v["coef"][0] = serde_json::json!(77.0)),
    ];
    for (k, (file, change)) in spoils.iter().enumerate() {
        let name = format!("out{k}");
        old_result(&dir.path().join(&name));
        let file = dir.path().join(&name).join(file);
        let mut value = json(&file);
        change(&mut value);
        fs::write(file, value.to_string()).unwrap();
        let predicted = agepath(dir.path(), &["predict", &name, "-"], b"a,b\n1,2\n");
        assert_eq!((predicted.code, predicted.stdout.as_str()), (1, ""), "{k}: {predicted:?}");
        assert!(!predicted.stderr.contains("panicked"), "{k}: {predicted:?}");
    }
}

// What happens to writers that are killed, and to two of them at once. `make soak` repeats these.

const SEEDS: [&str; 2] = ["1", "2"];

fn writer(dir: &Path, out: &str, seed: &str) -> std::process::Command {
    let arguments = [
        "path",
        "builtin:diabetes",
        "-o",
        out,
        "-q",
        "--seed",
        seed,
        "--validation",
        "0.25",
        "--threads",
        "1",
        "--certify",
        "50",
    ];
    let mut command = command(dir, &arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// What tells whose file it is: everything but the time it took.
fn mark(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).unwrap();
    match file.file_name().unwrap().to_str().unwrap() {
        "path.json" => json(file)["problem"]["rows"].to_string().into_bytes(),
        "summary.json" => json(file)["chosen"].to_string().into_bytes(),
        "report.html" => {
            let text = String::from_utf8(bytes).unwrap();
            SEEDS.iter().find(|seed| text.contains(&format!("--seed {seed}"))).unwrap().as_bytes().to_vec()
        }
        "manifest.json" => json(file)["files"]["train.npz"].to_string().into_bytes(),
        _ => bytes,
    }
}

fn marks(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), mark(&dir.join(name)))).collect()
}

/// Two whole results, and how long one takes.
fn references(dir: &Path) -> ([BTreeMap<String, Vec<u8>>; 2], Duration) {
    let begun = Instant::now();
    let each = SEEDS.map(|seed| {
        let name = format!("reference{seed}");
        assert!(writer(dir, &name, seed).status().unwrap().success());
        let marks = marks(&dir.join(name));
        assert_eq!(marks.keys().collect::<Vec<_>>(), FILES.iter().collect::<Vec<_>>());
        marks
    });
    let alike: Vec<_> = FILES.iter().filter(|file| each[0][**file] == each[1][**file]).collect();
    assert!(alike.is_empty(), "the marks must tell runs apart: {alike:?}");
    (each, begun.elapsed() / 2)
}

/// How often: a few times here, `AGEPATH_SOAK` times when asked.
fn repetitions() -> u64 {
    std::env::var("AGEPATH_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

#[cfg(unix)]
#[test]
fn a_killed_writer_leaves_the_old_result_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, takes) = references(dir.path());
    let out = dir.path().join("out");
    assert!(writer(dir.path(), "out", SEEDS[0]).status().unwrap().success());
    let (mut old, mut new) = (0, 0);
    for k in 0..repetitions() {
        // Spread over the whole run; every other one about the time when files are swapped.
        let share = ((k * 7919 + 13) % 1000) as f64 / 1000.0;
        let moment = if k.is_multiple_of(2) { 1.1 * share } else { 0.8 + 0.3 * share };
        let before = marks(&out);
        let next = usize::from(before == whole[0]);
        let mut child = writer(dir.path(), "out", SEEDS[next]).spawn().unwrap();
        std::thread::sleep(takes.mul_f64(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = marks(&out);
        let whose = |file: &String| whole.iter().position(|w| w.get(file) == after.get(file));
        let seen: Vec<_> = after.keys().map(|file| (file, whose(file))).collect();
        assert!(after == before || after == whole[next], "killed after {moment} of a run: {seen:?}");
        if after == before {
            old += 1
        } else {
            new += 1
        }
        assert_eq!(agepath(dir.path(), &["predict", "out", "builtin:diabetes", "-o", "p.csv"], b"").code, 0);
    }
    println!("{old} old and {new} new results");
    // The next writer clears up.
    assert!(writer(dir.path(), "out", SEEDS[0]).status().unwrap().success());
    assert_eq!(names(dir.path()), ["out", "p.csv", "reference1", "reference2"]);
}

#[test]
fn of_two_writers_one_wins_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, takes) = references(dir.path());
    for k in 0..repetitions().div_ceil(4) {
        if k.is_multiple_of(2) {
            fs::remove_dir_all(dir.path().join("out")).ok();
        }
        let mut first = writer(dir.path(), "out", SEEDS[0]).spawn().unwrap();
        std::thread::sleep(takes.mul_f64((k % 5) as f64 / 50.0));
        let mut second = writer(dir.path(), "out", SEEDS[1]).spawn().unwrap();
        assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
        let marks = marks(&dir.path().join("out"));
        assert!(whole.contains(&marks), "pair {k}");
    }
    assert_eq!(names(dir.path()), ["out", "reference1", "reference2"]);
}
