//! More than two classes: one path each, put together.

mod common;

use common::agepath;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

const NAMES: [&str; 3] = ["red", "deep blue", "../green"];

/// Three clouds of points; every eleventh row has a wrong label.
fn table(from: usize, to: usize) -> String {
    let row = |i: usize| {
        let k = i % 3;
        let (x, y) = ([0.0, 4.0, 2.0][k], [0.0, 0.5, 4.0][k]);
        let (dx, dy) = ((i * 7 % 23) as f64 / 8.0 - 1.4, (i * 5 % 19) as f64 / 7.0 - 1.3);
        let label = if i % 11 == 5 { NAMES[(k + 1) % 3] } else { NAMES[k] };
        format!("{},{},{label}\n", x + dx, y + dy)
    };
    "x,y,colour\n".to_owned() + &(from..to).map(row).collect::<String>()
}

#[test]
fn each_class_has_a_path_and_the_largest_decision_wins() {
    let dir = tempfile::tempdir().unwrap();
    let text = table(0, 160);
    let ran = agepath(dir.path(), &["path", "-", "-o", "out", "--cv", "4"], text.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("3 classes") && ran.stdout.contains("together  4-fold accuracy"), "{}", ran.stdout);
    let out = dir.path().join("out");
    let (index, model) = (json(&out.join("path.json")), json(&out.join("model.json")));
    assert_eq!(index["format"], "agepath.classes/1");
    // Sorted as text.
    assert_eq!(model["classes"], serde_json::json!(["../green", "deep blue", "red"]));
    for (k, class) in index["classes"].as_array().unwrap().iter().enumerate() {
        let path = json(&out.join(class["directory"].as_str().unwrap()).join("path.json"));
        let name = class["name"].as_str().unwrap();
        assert_eq!(path["problem"]["classes"], serde_json::json!([format!("not {name}"), name]));
        assert_eq!(path["problem"]["n"], 160);
        assert_eq!(model["one_vs_rest"][k]["classes"][1], name);
    }
    let summary = json(&out.join("summary.json"));
    let accuracy = summary["accuracy"]["score"].as_f64().unwrap();
    assert!(accuracy > 0.8, "{accuracy}");

    // What model.json says, computed here.
    let ran = agepath(dir.path(), &["predict", "out", "-"], b"x,y\n0.1,0.3\n4.2,0.1\n2,4\n1.9,1.2\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut lines = ran.stdout.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..3], ["row", "prediction", "probability_../green"]);
    assert_eq!(header[5..], ["decision_../green", "decision_deep blue", "decision_red"]);
    let expected = ["red", "deep blue", "../green", ""];
    for (line, (point, expected)) in
        lines.zip([[0.1, 0.3], [4.2, 0.1], [2.0, 4.0], [1.9, 1.2]].into_iter().zip(expected))
    {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |k: usize| fields[k].parse::<f64>().unwrap();
        let z: Vec<f64> = (0..3)
            .map(|k| {
                let part = &model["one_vs_rest"][k];
                let coef = |j: usize| part["coef"][j].as_f64().unwrap();
                part["intercept"].as_f64().unwrap() + coef(0) * point[0] + coef(1) * point[1]
            })
            .collect();
        let p: Vec<f64> = z.iter().map(|z| 1.0 / (1.0 + (-z).exp())).collect();
        let best = (0..3).max_by(|&a, &b| z[a].total_cmp(&z[b])).unwrap();
        assert_eq!(fields[1], model["classes"][best]);
        assert!(expected.is_empty() || fields[1] == expected, "{line}");
        for k in 0..3 {
            assert!((number(5 + k) - z[k]).abs() < 1e-9 * z[k].abs().max(1.0), "{line}");
            assert!((number(2 + k) - p[k] / p.iter().sum::<f64>()).abs() < 1e-9, "{line}");
        }
    }
    // Every path at one age.
    let age = summary["classes"][0]["age"].as_f64().unwrap();
    let ran = agepath(dir.path(), &["at", "out/class-0", "--age", &age.to_string()], b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = agepath(dir.path(), &["at", "out", "--age", "1e9"], b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
}

#[test]
fn wrong_labels_are_the_first_suspects_and_named_as_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let ran = agepath(dir.path(), &["path", "-", "-o", "out", "--cv", "4", "-q"], table(0, 160).as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    let text = fs::read_to_string(dir.path().join("out/suspects.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 160);
    let is_wrong: Vec<bool> = rows.iter().map(|r| r[0].parse::<usize>().unwrap() % 11 == 5).collect();
    let wrong = is_wrong.iter().filter(|&&w| w).count();
    // The share of pairs of a wrong and a right label that are in the right order.
    let right_before = |k: usize| is_wrong[..k].iter().filter(|&&w| !w).count();
    let disorder: usize = (0..160).filter(|&k| is_wrong[k]).map(right_before).sum();
    let auroc = 1.0 - disorder as f64 / (wrong * (160 - wrong)) as f64;
    assert!(auroc > 0.9, "{auroc}");
    for row in &rows {
        let truth = table(0, 160).lines().nth(1 + row[0].parse::<usize>().unwrap()).unwrap().to_owned();
        assert!(truth.ends_with(row[5]) && NAMES.contains(&row[6]) && NAMES.contains(&row[8]), "{row:?}");
    }
}

#[test]
fn a_file_validates_and_noise_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("train.csv"), table(0, 120)).unwrap();
    fs::write(dir.path().join("held.csv"), table(120, 180)).unwrap();
    let base = ["path", "train.csv", "-o", "out", "--json", "--validation", "held.csv", "--noise"];
    for noise in ["flip:0.1", "margin:0.1", "outliers:0.1"] {
        let ran = agepath(dir.path(), &[&base[..], &[noise, "--plot", "figure.svg"]].concat(), b"");
        assert_eq!(ran.code, 0, "{noise}: {ran:?}");
        let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&summary["rows"], &summary["validation_rows"]), (&120.into(), &60.into()));
        assert_eq!(summary["noise"]["rows"], 12);
        assert!(summary["noise"]["found"].as_u64().unwrap() <= 12);
        assert!(summary["accuracy"]["ordinary_score"].as_f64().unwrap() > 0.5, "{summary}");
        // Every class sees the same corrupted rows.
        let path = |k: usize| json(&dir.path().join(format!("out/class-{k}/path.json")));
        assert_eq!(path(0)["noise"]["rows"], path(2)["noise"]["rows"]);
        assert!(dir.path().join("figure.class-2.svg").exists());
    }
    let refused = agepath(dir.path(), &[&base[..], &["target:0.1"]].concat(), b"");
    assert!(refused.code == 2 && refused.stderr.contains("flip"), "{refused:?}");
}

#[test]
fn a_kernel_machine_takes_numbers_as_classes() {
    let dir = tempfile::tempdir().unwrap();
    let row = |i: usize| format!("{},{},{}\n", i % 17, i % 13, (i % 17) / 6);
    let text = "a,b,y\n".to_owned() + &(0..90).map(row).collect::<String>();
    let ran = agepath(dir.path(), &["path", "-", "-o", "out", "--model", "svm", "--cv", "3", "-q"], text.as_bytes());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(json(&dir.path().join("out/model.json"))["classes"], serde_json::json!(["0", "1", "2"]));
    let ran = agepath(dir.path(), &["predict", "out", "-"], text.as_bytes());
    let right = ran.stdout.lines().zip(text.lines()).skip(1);
    let right = right.filter(|(p, t)| p.split(',').nth(1) == t.split(',').nth(2)).count();
    assert!(right > 80, "{right}");
    assert!(!ran.stdout.contains("probability"), "{}", ran.stdout);
}

#[test]
fn without_validation_the_ordinary_fits_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let base = ["path", "-", "-o", "out"];
    assert_eq!(agepath(dir.path(), &base, table(0, 120).as_bytes()).code, 0);
    assert!(dir.path().join("out/model.json").exists());
    let ran = agepath(dir.path(), &[&base[..], &["--validation", "0"]].concat(), table(0, 120).as_bytes());
    assert!(ran.code == 0 && ran.stdout.contains("the ordinary fit"), "{ran:?}");
    assert!(dir.path().join("out/model.json").exists() && dir.path().join("out/suspects.csv").exists());
    let ran = agepath(dir.path(), &["predict", "out", "-"], b"x,y\n0.1,0.3\n");
    assert!(ran.code == 0 && ran.stdout.contains("red"), "{ran:?}");
}

#[test]
fn bad_input_names_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("train.csv"), table(0, 90)).unwrap();
    fs::write(dir.path().join("other.csv"), "x,y,colour\n1,2,pink\n").unwrap();
    let run = |options: &[&str]| agepath(dir.path(), &[&["path", "train.csv", "-o", "out"], options].concat(), b"");
    let unknown = run(&["--validation", "other.csv"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("pink") && unknown.stderr.contains("line 2"), "{unknown:?}");
    let unknown = run(&["--test", "other.csv"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("pink"), "{unknown:?}");
    let folds = run(&["--cv", "40"]);
    assert!(folds.code == 2 && folds.stderr.contains("smallest class"), "{folds:?}");
    let metric = run(&["--metric", "mae"]);
    assert!(metric.code == 2 && metric.stderr.contains("accuracy"), "{metric:?}");
    // Nothing was written under a final name.
    assert!(!dir.path().join("out").exists());
    let words = run(&["--model", "lasso"]);
    assert!(words.code == 1 && words.stderr.contains("red"), "{words:?}");
}
