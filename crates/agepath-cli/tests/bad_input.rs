//! Bad input, one row per way of being bad: the exit code, and the words that tell the user where to look.

mod common;

use common::agepath;
use std::fs;
use std::path::Path;

/// A file, options after `path FILE -o out`, the exit code, and words the message must contain.
struct Case {
    name: &'static str,
    file: &'static str,
    options: &'static [&'static str],
    code: i32,
    words: &'static [&'static str],
}

const GOOD: &str = "a,b,y\n1,2,3.5\n2,1,1\n3,5,7\n4,2,6\n5,9,2\n6,3,8\n";

const fn case(
    name: &'static str,
    file: &'static str,
    options: &'static [&'static str],
    code: i32,
    words: &'static [&'static str],
) -> Case {
    Case { name, file, options, code, words }
}

const CASES: &[Case] = &[
    case("missing value", "a,b,y\n1,2,3\n4,,6\n", &[], 1, &["data.csv", "line 3", "\"b\"", "missing"]),
    case("NA", "a,b,y\n1,2,3\n4,NA,6\n", &[], 1, &["data.csv", "line 3", "\"b\"", "NA"]),
    case("missing target", "a,b,y\n1,2,3\n4,5,\n", &[], 1, &["line 3", "\"y\"", "missing"]),
    case("NaN", "a,b,y\n1,2,3\n4,nan,6\n", &[], 1, &["data.csv", "line 3", "\"b\"", "nan"]),
    case("infinite", "a,b,y\n1,2,3\n4,inf,6\n", &[], 1, &["line 3", "\"b\"", "inf", "finite"]),
    case("impute", GOOD, &["--impute", "mean"], 2, &["mean", "median"]),
    case("strict", "a,b,y\n1,u,3\n4,v,6\n7,u,9\n", &["--strict"], 1, &["data.csv", "line 2", "\"b\"", "\"u\""]),
    case("text", "a,b,y\n1,2,3\n4,red,6\n7,8,9\n", &[], 1, &["data.csv", "line 3", "\"b\"", "red", "not a number"]),
    case("text in target", "a,y\n1,2\n4,red\n7,8\n", &[], 1, &["line 3", "\"y\"", "red", "not a number"]),
    case("ragged", "a,b,y\n1,2,3\n4,5\n", &[], 1, &["data.csv", "line 3", "2 fields", "3"]),
    case("constant target", "a,y\n1,5\n2,5\n3,5\n", &[], 1, &["data.csv", "\"y\"", "5", "every row"]),
    case("one class", "a,y\n1,u\n2,u\n3,u\n", &[], 1, &["data.csv", "\"y\"", "1 classes", "u"]),
    case("a class per row", "a,y\n1,u\n2,v\n3,w\n", &[], 1, &["\"y\"", "3 classes (u, v, w)", "3 rows"]),
    case("numbers as classes", GOOD, &["--model", "logistic"], 1, &["\"y\"", "6 classes", "--model lasso"]),
    case(
        "fractions as classes",
        "a,y\n1,0.5\n2,1\n3,2\n4,0.5\n5,1\n6,2\n7,1\n",
        &["--model", "svm"],
        1,
        &["\"y\"", "3 classes (0.5, 1, 2)", "--model lasso"],
    ),
    case("classes as numbers", "a,y\n1,u\n2,v\n", &["--model", "lasso"], 1, &["line 2", "\"y\"", "\"u\""]),
    case("one row", "a,y\n1,5\n", &[], 1, &["data.csv", "1 rows", "2"]),
    case("header only", "a,b,y\n", &[], 1, &["data.csv", "0 rows"]),
    case("empty", "", &[], 1, &["data.csv", "empty"]),
    case("one column", "y\n1\n2\n", &[], 1, &["data.csv", "one column", "\"y\""]),
    case("same name twice", "a,a,y\n1,2,3\n4,5,6\n", &[], 1, &["line 1", "\"a\""]),
    case("unknown target", GOOD, &["--target", "z"], 1, &["data.csv", "\"z\"", "a, b, y"]),
    case("no validation file", GOOD, &["--validation", "held.csv"], 1, &["held.csv", "No such file"]),
    case("plot of another kind", GOOD, &["--plot", "p.pdf"], 2, &["plot", "p.pdf", ".svg", ".png"]),
    case("ages reversed", GOOD, &["--ages", "5:1"], 2, &["ages", "5:1", "LO < HI"]),
    case("ages negative", GOOD, &["--ages", "-1:1"], 2, &["ages", "-1:1"]),
    case("ages zero", GOOD, &["--ages", "0:1"], 2, &["ages", "0:1"]),
    case("ages infinite", GOOD, &["--ages", "1:inf"], 2, &["ages", "1:inf"]),
    case("ages text", GOOD, &["--ages", "low:high"], 2, &["ages", "low:high", "two numbers"]),
    case("ages one number", GOOD, &["--ages", "3"], 2, &["ages", "LO:HI"]),
    case("alpha negative", GOOD, &["--alpha", "-1"], 2, &["alpha", "-1"]),
    case("alpha NaN", GOOD, &["--alpha", "nan"], 2, &["alpha", "NaN"]),
    case("alpha text", GOOD, &["--alpha", "x"], 2, &["alpha", "x"]),
    case("l1 ratio", GOOD, &["--l1-ratio", "2", "--model", "elastic-net"], 2, &["l1-ratio", "2", "0 to 1"]),
    case("c zero", GOOD, &["--c", "0"], 2, &["c = 0"]),
    case("gamma", GOOD, &["--pacing", "mixture", "--pacing-gamma", "-2"], 2, &["pacing-gamma", "-2"]),
    case("model", GOOD, &["--model", "forest"], 2, &["forest", "lasso", "logistic"]),
    case("pacing", GOOD, &["--pacing", "fast"], 2, &["fast", "hard", "mixture"]),
    case("direction", GOOD, &["--direction", "left"], 2, &["left", "down"]),
    case("metric", GOOD, &["--metric", "accuracy"], 2, &["accuracy", "mae"]),
    case("rule", GOOD, &["--select", "best"], 2, &["best", "min", "1se"]),
    case("one fold", GOOD, &["--cv", "1"], 2, &["cv = 1", "from 2 to 6"]),
    case("folds and validation rows", GOOD, &["--cv", "2", "--validation", "0.2"], 2, &["--cv", "--validation"]),
    case("undefined metric", GOOD, &["--cv", "6", "--metric", "r2"], 2, &["metric = r2", "differ"]),
    case("validation above 1", GOOD, &["--validation", "1.5"], 2, &["validation", "1.5"]),
    case("validation leaves nothing", GOOD, &["--validation", "0.99"], 1, &["data.csv", "training"]),
    case("noise kind", GOOD, &["--noise", "labels:0.1"], 2, &["labels", "outliers, target, flip, margin"]),
    case("noise rate", GOOD, &["--noise", "target:2"], 2, &["target:2"]),
    case("noise for classes", GOOD, &["--noise", "flip:0.1"], 2, &["flip", "outliers or target"]),
    case("time", GOOD, &["--time-limit", "-1"], 2, &["time-limit", "-1"]),
];

fn check(name: &str, ran: &common::Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{name}: {ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{name}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "{name}");
    for word in words {
        assert!(ran.stderr.contains(word), "{name}: \"{word}\" is not in: {}", ran.stderr);
    }
}

#[test]
fn bad_files_and_options() {
    let dir = tempfile::tempdir().unwrap();
    for c in CASES {
        fs::write(dir.path().join("data.csv"), c.file).unwrap();
        let mut arguments = vec!["path", "data.csv", "-o", "out"];
        arguments.extend(c.options);
        check(c.name, &agepath(dir.path(), &arguments, b""), c.code, c.words);
        let left = dir.path().join("out/path.json");
        assert!(!left.exists(), "{}: nothing may be written", c.name);
    }
}

#[test]
fn bad_places() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| agepath(dir.path(), arguments, b"");
    fs::write(dir.path().join("data.csv"), GOOD).unwrap();
    fs::write(dir.path().join("file"), "x").unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();

    let absent = run(&["path", "absent.csv", "-o", "out"]);
    check("absent", &absent, 1, &["absent.csv", "No such file"]);
    let builtin = run(&["path", "builtin:iris", "-o", "out"]);
    check("builtin", &builtin, 2, &["iris", "diabetes"]);
    let onto_file = run(&["path", "data.csv", "-o", "file"]);
    check("output is a file", &onto_file, 1, &["write", "file"]);
    check("no output", &run(&["path", "data.csv"]), 2, &["--output"]);
    check("no path", &run(&["at", "empty", "--age", "1"]), 1, &["empty", "path.json", "agepath path"]);
    check("no directory", &run(&["at", "nowhere", "--age", "1"]), 1, &["nowhere", "path.json"]);
    check("no age", &run(&["at", "empty"]), 2, &["--age"]);
    check("age text", &run(&["at", "empty", "--age", "x"]), 2, &["--age", "x"]);
    fs::write(dir.path().join("empty/path.json"), "{\"format\": \"other\"}").unwrap();
    check("other file", &run(&["at", "empty", "--age", "1"]), 1, &["empty", "path.json"]);
}

#[test]
fn cut_off_gzip() {
    let dir = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agepath/data/diabetes.csv.gz");
    let bytes = fs::read(source).unwrap();
    fs::write(dir.path().join("cut.csv.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let ran = agepath(dir.path(), &["path", "cut.csv.gz", "-o", "out"], b"");
    check("gzip", &ran, 1, &["cut.csv.gz", "cut off"]);
    let piped = agepath(dir.path(), &["path", "-", "-o", "out"], &bytes[..100]);
    check("piped gzip", &piped, 1, &["standard input", "cut off"]);
}

#[test]
fn ages_off_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["path", "builtin:diabetes", "--ages", "1:5", "-o", "out", "--quiet"];
    let ran = agepath(dir.path(), &arguments, b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    for age in ["0.5", "6", "-1", "nan"] {
        let ran = agepath(dir.path(), &["at", "out", "--age", age], b"");
        check(age, &ran, 1, &["age", "outside", "[1, 5]"]);
    }
}
