//! What the command tells besides results: completions, manual pages, words, the demonstrations, and an answer to Ctrl-C.

mod common;

use common::agepath;
use std::fs;

#[test]
fn completions_and_manual_pages_know_every_subcommand() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let ran = agepath(dir.path(), &["completions", shell], b"");
        assert_eq!(ran.code, 0, "{ran:?}");
        for word in ["predict", "compare", "solver-units", "max-size"] {
            assert!(ran.stdout.contains(word), "{shell} {word}");
        }
    }
    assert_eq!(agepath(dir.path(), &["completions", "tcl"], b"").code, 2);
    let page = agepath(dir.path(), &["man"], b"");
    assert!(page.code == 0 && page.stdout.contains(".TH agepath 1"), "{page:?}");
    assert_eq!(agepath(dir.path(), &["man", "-o", "man"], b"").code, 0);
    for name in ["agepath", "agepath-path", "agepath-at", "agepath-predict", "agepath-compare", "agepath-demo"] {
        let text = fs::read_to_string(dir.path().join(format!("man/{name}.1"))).unwrap();
        assert!(text.contains(".SH NAME"), "{name}");
    }
    assert!(fs::read_to_string(dir.path().join("man/agepath-path.1")).unwrap().contains("categorical"));
}

#[test]
fn words_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let all = agepath(dir.path(), &["explain"], b"");
    let one = agepath(dir.path(), &["explain", "jump"], b"");
    assert!(all.code == 0 && all.stdout.contains(&one.stdout) && one.stdout.starts_with("jump "), "{one:?}");
    assert_eq!(agepath(dir.path(), &["explain", "elephant"], b"").code, 2);
    assert!(agepath(dir.path(), &["--help"], b"").stdout.contains("agepath explain"));
}

#[test]
fn demonstrations_go_where_they_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let ran = agepath(dir.path(), &["demo", "--data", "breast_cancer", "-o", "here"], b"");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("agepath path builtin:breast_cancer --noise flip:0.3 --output here"), "{}", ran.stderr);
    assert!(dir.path().join("here/report.html").exists() && !dir.path().join("agepath-demo").exists());
    assert_eq!(agepath(dir.path(), &["demo", "--data", "iris"], b"").code, 2);
}

#[cfg(unix)]
#[test]
fn ctrl_c_is_answered_at_once() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let dir = tempfile::tempdir().unwrap();
    let mut child = common::command(dir.path(), &["path", "builtin:digits", "--task", "numbers", "-o", "out"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("ages ")));
    let signal = || Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let sent = Instant::now();
    assert!(signal().success());
    assert!(lines.any(|line| line.starts_with("stopping, writing what is there")));
    assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Lines in every notation, missing values, and a target: predicted, filled in, scored.
#[test]
fn predictions_fill_in_and_are_scored() {
    let dir = tempfile::tempdir().unwrap();
    let row = |i: usize| format!("{},{},{}\n", i % 13, ["u", "v"][i % 2], 2.0 * (i % 13) as f64 + (i % 3) as f64 / 2.0);
    let train = "a,c,y\n".to_owned() + &(0..90).map(row).collect::<String>();
    assert_eq!(agepath(dir.path(), &["path", "-", "-o", "out", "-q"], train.as_bytes()).code, 0);
    let holes = b"a,c,y\n3,u,6.5\n,v,\n5,,10\n";
    let refused = agepath(dir.path(), &["predict", "out", "-"], holes);
    assert!(refused.code == 1 && refused.stderr.contains("--impute median"), "{refused:?}");
    let filled = agepath(dir.path(), &["predict", "out", "-", "--impute", "median"], holes);
    assert_eq!((filled.code, filled.stdout.lines().count()), (0, 4), "{filled:?}");
    assert!(filled.stderr.contains("mae") && filled.stderr.contains("over 2 rows"), "{}", filled.stderr);
    let quiet = agepath(dir.path(), &["predict", "out", "-", "--impute", "median", "-q"], holes);
    assert_eq!((quiet.stderr.as_str(), quiet.stdout == filled.stdout), ("", true));
    let without = agepath(dir.path(), &["predict", "out", "-"], b"a,c\n3,u\n");
    assert_eq!((without.code, without.stderr.as_str()), (0, ""), "{without:?}");
}

/// A limit on memory is met by a sentence, not by an abort.
#[cfg(target_os = "linux")]
#[test]
fn what_does_not_fit_into_memory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let row = (0..400).map(|j| (j * 7 % 10).to_string()).collect::<Vec<_>>().join(",");
    fs::write(dir.path().join("wide.csv"), format!("{row}\n").repeat(20_000)).unwrap();
    let command = format!("ulimit -v 700000; exec {} path wide.csv -o out --threads 1", env!("CARGO_BIN_EXE_agepath"));
    let ran = std::process::Command::new("bash").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
    let text = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{text}");
    assert!(text.contains("GiB of memory"), "{text}");
    let small = agepath(dir.path(), &["path", "wide.csv", "-o", "out", "--max-size", "1M"], b"");
    assert!(small.code == 1 && small.stderr.contains("--max-size"), "{small:?}");
    let few = agepath(dir.path(), &["path", "wide.csv", "-o", "out", "--max-columns", "100"], b"");
    assert!(few.code == 1 && few.stderr.contains("--max-columns"), "{few:?}");
    let odd = agepath(dir.path(), &["path", "wide.csv", "-o", "out", "--max-size", "much"], b"");
    assert_eq!(odd.code, 2, "{odd:?}");
}
