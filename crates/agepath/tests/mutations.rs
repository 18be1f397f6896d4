//! Files that were good once, changed at random but with an eye on their structure: whatever comes of them, readers neither
//! panic nor answer wrongly. `AGEPATH_SOAK` says how many to try.

use agepath::dataset::{DataError, Impute, ReadOptions, Table, read_from};
use agepath::report::Predictor;
use flate2::{Compression, write::GzEncoder};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn repetitions(few: usize) -> usize {
    std::env::var("AGEPATH_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}

/// What tends to break readers.
const TOKENS: &[&str] = &[
    "",
    "0",
    "-0",
    "1e999",
    "-1e-999",
    "nan",
    "inf",
    "NA",
    "?",
    "\"",
    "'",
    "\\",
    ",",
    ";",
    "\t",
    " ",
    "|",
    "\r\n",
    "\n\n",
    "\r",
    "{",
    "}",
    ":",
    "99999999999999999999",
    "18446744073709551616",
    "1:1",
    "0:1",
    "-1:2",
    "4294967296:1",
    "@data",
    "@attribute",
    "%",
    "#",
    "é",
    "\u{feff}",
    "\u{0}",
    "1,5",
    "1.234,5",
    "1,234.5",
    "2024-02-30",
    "2024-02-29T25:00",
    "red",
    "1_000",
    "0x10",
    "+",
    "--1",
    "1.",
    ".5",
    "(3, 2)",
    "'<f8'",
    "'fortran_order': True",
    "PAR1",
    "PK\u{3}\u{4}",
];

fn seeds() -> Vec<Vec<u8>> {
    let data = |name: &str| std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let csv = "a,b,c,y\n1,2.5,red,3\n4,-1e3,blue,6\n7,0.001,red,9\n1,2,green,4\n".as_bytes().to_vec();
    let dates = "d;v;y\n2024-01-31;1,5;2,25\n2023-12-01;2.000,5;3\n2023-11-05;-0,5;4\n".as_bytes().to_vec();
    let libsvm = "+1 1:0.5 3:2\n-1 2:1e3 # more\n+1\n-1 1:1 2:2 3:3\n".as_bytes().to_vec();
    let arff = "@relation r\n@attribute a numeric\n@attribute c {u, 'v w'}\n@attribute y real\n@data\n1,u,2\n{0 3, 1 'v w', 2 4}\n?,u,3\n";
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&csv).unwrap();
    let mut all = vec![csv, dates, libsvm, arff.as_bytes().to_vec(), gzip.finish().unwrap()];
    all.extend(["fortran.npz", "integers.npz", "nan.npz", "good.parquet", "missing.parquet"].map(data));
    all
}

/// One to four changes: of bits and bytes, tokens, fields, lines, ends, or pieces of another file.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..=4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.random_range(0..bytes.len());
        let to = random.random_range(at..bytes.len());
        match random.random_range(0..9) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = *[0u8, 1, 127, 128, 255, b'\n', b','].choose(random).unwrap(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..to.min(at + 40))),
            4 => {
                let piece = bytes[at..to.min(at + 40)].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let token = TOKENS.choose(random).unwrap();
                bytes.splice(at..at, token.bytes());
            }
            6 => replace_field(bytes, at, TOKENS.choose(random).unwrap()),
            7 => {
                let from = random.random_range(0..other.len());
                let piece = other[from..(from + 60).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
                let (a, b) = (random.random_range(0..lines.len()), random.random_range(0..lines.len()));
                lines.swap(a, b);
                *bytes = lines.join(&b'\n');
            }
        }
    }
}

fn replace_field(bytes: &mut Vec<u8>, at: usize, token: &str) {
    let ends = |b: &u8| b",;\t\n: ".contains(b);
    let from = bytes[..at].iter().rposition(ends).map_or(0, |k| k + 1);
    let to = bytes[at..].iter().position(ends).map_or(bytes.len(), |k| at + k);
    bytes.splice(from..to.max(from), token.bytes());
}

/// What holds for every table, whatever it was read from.
fn check(table: &Table) {
    let (n, d) = (table.lines.len(), table.features.len());
    assert_eq!((table.x.len(), table.rows.len()), (n * d, n));
    assert!(table.labels.len() == n || table.labels.is_empty());
    assert!(table.x.iter().all(|v| v.is_finite()));
    assert_eq!(table.encoding.features(), table.features);
    assert!(table.rows.windows(2).all(|pair| pair[0] < pair[1]));
    for code in table.encoding.0.iter().filter(|code| code.levels.is_some()) {
        // Of the columns of one category, exactly one is 1 in each row.
        let from = table.features.iter().position(|f| f.starts_with(&format!("{}=", code.column))).unwrap();
        let width = code.levels.as_ref().unwrap().len();
        let whole = |row: &[f64]| row[from..from + width].iter().sum::<f64>() == 1.0;
        assert!(table.x.chunks(d).all(whole), "{}", code.column);
    }
    // As a data set, it is one or says why not.
    let _ = table.dataset(table.guess());
    let _ = table.many_classes();
}

#[test]
fn readers_survive_anything() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let seeds = seeds();
    let (mut read, mut refused) = (0, 0);
    for k in 0..repetitions(4000) {
        let mut bytes = seeds.choose(&mut random).unwrap().clone();
        let other = seeds.choose(&mut random).unwrap();
        mutate(&mut bytes, other, &mut random);
        let options = ReadOptions {
            impute: if k.is_multiple_of(3) { Impute::Median } else { Impute::Refuse },
            strict: k.is_multiple_of(5),
            ..ReadOptions::default()
        };
        let attempt = || -> Result<(), DataError> {
            let table = read_from(&bytes[..], "t", &options)?;
            check(&table);
            // Read again by its own encoding, it is the same.
            let follow = ReadOptions {
                encoding: Some(table.encoding.clone()),
                target: Some(table.target_name.clone()),
                ..ReadOptions::default()
            };
            if let Ok(again) = read_from(&bytes[..], "t", &follow) {
                assert_eq!((again.x, again.labels), (table.x, table.labels));
            }
            Ok(())
        };
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(())) => read += 1,
            Ok(Err(error)) => {
                assert!(error.to_string().len() < 2000, "{error}");
                refused += 1;
            }
            Err(_) => panic!("input {k}: {:?}", String::from_utf8_lossy(&bytes)),
        }
    }
    println!("{read} read, {refused} refused");
    assert!(read > 0 && refused > 0);
}

fn old_result() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agepath-cli/tests/data/old-result")
}

/// What the chosen model says of a few rows.
fn answer(dir: &Path) -> Result<Vec<f64>, agepath::Error> {
    let predictor = Predictor::open(dir, None)?;
    let options = ReadOptions {
        target: Some(predictor.target().to_owned()),
        target_optional: true,
        encoding: Some(predictor.encoding(Impute::Refuse)),
        ..ReadOptions::default()
    };
    let table = read_from(&b"a,b\n1,2\n3,4\n7,0.5\n"[..], "t", &options)?;
    Ok(predictor.predict(&table)?.prediction.iter().map(|p| p.parse().unwrap()).collect())
}

/// Changes one value anywhere in a JSON document.
fn change_value(value: &mut Value, random: &mut ChaCha8Rng) {
    match value {
        Value::Object(fields) if !fields.is_empty() && random.random_range(0..12) > 0 => {
            let k = random.random_range(0..fields.len());
            if let Some(inner) = fields.values_mut().nth(k) {
                change_value(inner, random);
            }
        }
        Value::Array(items) if !items.is_empty() && random.random_range(0..6) > 0 => {
            let k = random.random_range(0..items.len());
            match random.random_range(0..8) {
                0 => drop(items.remove(k)),
                1 => items.insert(k, items[k].clone()),
                2 => items.clear(),
                _ => change_value(&mut items[k], random),
            }
        }
        other => {
            let number = other.as_f64().unwrap_or(1.0);
            let changed = [
                serde_json::json!(null),
                serde_json::json!(-number),
                serde_json::json!(number * 1.01),
                serde_json::json!(0),
                serde_json::json!(1e300),
                serde_json::json!(1e-300),
                serde_json::json!(-1),
                serde_json::json!("words"),
                serde_json::json!([]),
                serde_json::json!({}),
                serde_json::json!(u64::MAX),
                serde_json::json!(true),
                serde_json::json!([1.0, 2.0]),
                serde_json::json!(number + 1.0),
            ];
            *other = changed.choose(random).unwrap().clone();
        }
    }
}

#[test]
fn changed_results_are_refused_or_answer_the_same() {
    let dir = std::env::temp_dir().join(format!("agepath-mutations-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let files = ["path.json", "model.json", "train.csv.gz"];
    let good = files.map(|name| std::fs::read(old_result().join(name)).unwrap());
    let truth = answer(&old_result()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let (mut same, mut refused) = (0, 0);
    // Each takes a hundred times as long as a file.
    for k in 0..repetitions(40_000) / 20 {
        for (name, bytes) in files.iter().zip(&good) {
            std::fs::write(dir.join(name), bytes).unwrap();
        }
        let which = k % 2;
        let bytes = if k.is_multiple_of(7) {
            let mut bytes = good[which].clone();
            mutate(&mut bytes, &good[1 - which], &mut random);
            bytes
        } else {
            let mut value: Value = serde_json::from_slice(&good[which]).unwrap();
            change_value(&mut value, &mut random);
            serde_json::to_vec(&value).unwrap()
        };
        std::fs::write(dir.join(files[which]), &bytes).unwrap();
        let shown = || String::from_utf8_lossy(&bytes).into_owned();
        match catch_unwind(|| answer(&dir)) {
            Ok(Ok(found)) => {
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
                assert!(found.iter().zip(&truth).all(near), "{k}: {found:?} is not {truth:?} for {}", shown());
                same += 1;
            }
            Ok(Err(_)) => refused += 1,
            Err(_) => panic!("{k}: {}", shown()),
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
    println!("{same} answered the same, {refused} refused");
    assert!(same > 0 && refused > 0);
}
