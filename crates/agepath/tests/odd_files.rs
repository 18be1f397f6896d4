//! Files as people have them: dates, commas, separators, identifiers, whole numbers that are classes; and files that are too
//! large to be meant. Each was misread, refused with the wrong advice, or ate all memory once.

use agepath::dataset::{DataError, Limits, Notice, Pick, ReadOptions, Table, Unknown, read_from};
use agepath::loss::TargetKind;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

fn read(bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Table, DataError> {
    read_from(bytes.as_ref(), "t", options)
}

fn good(bytes: impl AsRef<[u8]>) -> Table {
    read(bytes, &ReadOptions::default()).unwrap()
}

fn bad(bytes: impl AsRef<[u8]>) -> DataError {
    read(bytes, &ReadOptions::default()).unwrap_err()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

fn picking(pick: Pick) -> ReadOptions {
    ReadOptions { pick, ..ReadOptions::default() }
}

fn rows(n: usize, row: impl Fn(usize) -> String) -> String {
    (0..n).map(row).collect()
}

#[test]
fn few_whole_numbers_are_classes_and_that_is_said() {
    let labels = |n, k| "a,y\n".to_owned() + &rows(n, |i| format!("{},{}\n", i * 7 % 11, 1 + i % k));
    let seven = good(labels(140, 7));
    assert_eq!(seven.guess(), TargetKind::Sign);
    assert!(seven.notices.contains(&Notice::IntegerClasses { column: "y".into(), count: 7, rows: 140 }));
    assert_eq!(seven.many_classes().unwrap().unwrap().names().join(","), "1,2,3,4,5,6,7");
    // Whoever says what it is gets that, without a word.
    let numbers = ReadOptions { task: Some(TargetKind::Real), ..ReadOptions::default() };
    let said = read(labels(140, 7), &numbers).unwrap();
    assert_eq!((said.guess(), said.notices.len()), (TargetKind::Real, 0));
    // Many, or few rows of each, or fractions: numbers.
    for text in [labels(140, 30), labels(40, 7), labels(140, 7).replace(",7\n", ",7.5\n")] {
        let table = good(&text);
        assert_eq!(table.guess(), TargetKind::Real);
        assert!(!table.notices.iter().any(|n| matches!(n, Notice::IntegerClasses { .. })));
    }
    let classes = ReadOptions { task: Some(TargetKind::Sign), ..ReadOptions::default() };
    assert_eq!(read(labels(40, 7), &classes).unwrap().guess(), TargetKind::Sign);
}

#[test]
fn columns_that_number_the_rows_are_pointed_out() {
    let text = "row,key,size,y\n".to_owned()
        + &rows(30, |i| format!("{},{},{},{}\n", 100 + i, (i * 7919) % 10_007, (i * 37) % 29, (i % 9) as f64 + 0.5));
    let found: Vec<Notice> =
        good(&text).notices.into_iter().filter(|n| matches!(n, Notice::Identifier { .. })).collect();
    let id = |column: &str| Notice::Identifier { file: "t".into(), column: column.into() };
    assert_eq!(found, [id("row"), id("key")]);
    assert!(found[0].to_string().contains("--drop row"));
}

#[test]
fn columns_are_dropped_chosen_and_taken_as_names() {
    let text = "id,zip,note,a,y\n1,01067,x 1,2,3.5\n2,80331,7,4,5.5\n3,01067,?,6,7.5\n";
    let drop = picking(Pick { drop: names(&["id", "note", "zip"]), ..Pick::default() });
    assert_eq!(read(text, &drop).unwrap().features, ["a"]);
    let columns = picking(Pick { columns: names(&["a", "zip"]), categorical: names(&["zip"]), ..Pick::default() });
    let table = read(text, &columns).unwrap();
    // Leading zeros are kept: they are names.
    assert_eq!(table.features, ["zip=01067", "zip=80331", "a"]);
    assert_eq!(table.x, [1.0, 0.0, 2.0, 0.0, 1.0, 4.0, 1.0, 0.0, 6.0]);
    for pick in [
        Pick { drop: names(&["b"]), ..Pick::default() },
        Pick { columns: names(&["b"]), ..Pick::default() },
        Pick { categorical: names(&["b"]), ..Pick::default() },
    ] {
        let error = read(text, &picking(pick)).unwrap_err();
        assert!(matches!(error, DataError::NoColumn { ref column, .. } if column == "b"), "{error}");
    }
    let arff =
        "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y numeric\n@data\n1,2,3.5\n4,5,6.5\n";
    let table = read(arff, &picking(Pick { drop: names(&["a"]), categorical: names(&["b"]), ..Pick::default() }));
    assert_eq!(table.unwrap().features, ["b=2", "b=5"]);
}

#[test]
fn dates_become_days_and_that_is_said() {
    let text = "day,at,a,y\n1970-01-03,1970-01-01T12:00:00Z,1,0.5\n2000-03-01,1970-01-02 00:00,2,1.5\n";
    let table = good(text);
    assert_eq!(table.x, [2.0, 0.5, 1.0, 11_017.0, 1.0, 2.0]);
    assert!(table.notices.contains(&Notice::Dates { file: "t".into(), columns: names(&["day", "at"]) }));
    // Other rows follow, and a date that is none has its place.
    let follow = ReadOptions { encoding: Some(table.encoding), ..ReadOptions::default() };
    assert_eq!(read("a,at,day,y\n9,1970-01-02,1970-01-11,1\n", &follow).unwrap().x, [10.0, 1.0, 9.0]);
    let wrong = read("a,at,day,y\n9,1970-01-02,soon,1\n", &follow).unwrap_err();
    assert!(matches!(wrong, DataError::NotDate { line: 2, ref value, .. } if value == "soon"), "{wrong}");
}

#[test]
fn commas_in_numbers() {
    let decimal = good("a;b;y\n1,5;1.234;2,25\n-2,5;12.345,5;3\n");
    assert_eq!(decimal.x, [1.5, 1234.0, -2.5, 12_345.5]);
    assert_eq!(decimal.labels, ["2.25", "3"]);
    assert!(decimal.notices.contains(&Notice::Commas { file: "t".into(), decimal: true }));
    let thousands = good("a,b,y\n\"1,234.5\",7,\"1,000\"\n\"12,345,678\",8,999\n");
    assert_eq!(thousands.x, [1234.5, 7.0, 12_345_678.0, 8.0]);
    assert_eq!(thousands.labels, ["1000", "999"]);
    assert!(thousands.notices.contains(&Notice::Commas { file: "t".into(), decimal: false }));
    // Both at once cannot be.
    let both = bad("a;b;y\n1,5;1,234.5;2\n2,5;2,000.5;3\n3,5;1,5;4\n2;2;2\n3;3;3\n4;4;4\n");
    assert!(matches!(both, DataError::NotNumber { line: 2, .. }), "{both}");
    // Words with commas are words.
    assert_eq!(good("a;y\nx, y;1.5\nz;2.5\n").features, ["a=x, y", "a=z"]);
}

#[test]
fn separators() {
    for text in ["a|b|y\n1|2|3\n4|5|6\n", "a b y\n1 2 3\n4 5 6\n", "a   b y \n 1  2   3\n4 5     6\n"] {
        let table = good(text);
        assert_eq!((table.features.join(","), table.x), ("a,b".to_owned(), vec![1.0, 2.0, 4.0, 5.0]), "{text:?}");
    }
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    let line = |text: &str| match bad(text) {
        DataError::NotNumber { line, .. } => line,
        other => panic!("{other}"),
    };
    for end in ["\n", "\r\n", "\r"] {
        let text = ["a,b,y", "1,2,3", "4,5,6", "7,x,9", "1,1,1", ""].join(end);
        assert_eq!(line(&text), 4, "{end:?}");
        let gaps = ["", "a,b,y", "1,2,3", "", "", "4,5,6", "", "7,x,9", "1,1,1"].join(end);
        assert_eq!(line(&gaps), 8, "{end:?}");
    }
    assert_eq!(line("a,b,y\r\n\"1\",2,\"3\r\n\"\r\n4,x,6\r\n7,8,9\r\n"), 4, "a field over two lines");
}

#[test]
fn rows_without_a_target_are_left_out_and_counted() {
    let table = good("a,y\n1,2.5\n2,\n3,4.5\n4,NA\n5,6.5\n");
    assert_eq!((table.x, table.rows, table.lines), (vec![1.0, 3.0, 5.0], vec![0, 2, 4], vec![2, 4, 6]));
    let notice = Notice::MissingTargets { file: "t".into(), column: "y".into(), count: 2, line: 3 };
    assert_eq!(table.notices, [notice]);
    // The rows keep their numbers in the file.
    let again = good("a,y\n1,2.5\n2,\n3,4.5\n4,NA\n5,6.5\n");
    assert_eq!(again.dataset(TargetKind::Real).unwrap().rows(), [0, 2, 4]);
    // A missing value in such a row does not matter; in another it does.
    assert!(read("a,y\n1,2.5\n,\n3,4.5\n", &ReadOptions::default()).is_ok());
    assert!(matches!(bad("a,y\n1,2.5\n2,\n,4.5\n4,5\n"), DataError::Missing { line: 4, .. }));
    assert!(matches!(bad("a,y\n1,\n2,\n3,4.5\n"), DataError::MissingTarget { line: 2, count: 2, rows: 3, .. }));
    // Where the target may be absent, every row is there.
    let optional = ReadOptions { target: Some("y".into()), target_optional: true, ..ReadOptions::default() };
    assert_eq!(read("a,y\n1,2.5\n2,\n", &optional).unwrap().labels, ["2.5", ""]);
}

#[test]
fn unknown_categories_are_none_of_the_known() {
    let encoding = good("c,y\nu,1.5\nv,2.5\nu,3.5\n").encoding;
    let follow = ReadOptions { encoding: Some(encoding), unknown: Unknown::None, ..ReadOptions::default() };
    let table = read("c,y\nu,1\nw,2\nz,3\n", &follow).unwrap();
    assert_eq!(table.x, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let (file, column, value) = ("t".into(), "c".into(), "w".into());
    assert_eq!(table.notices, [Notice::UnknownLevels { file, column, value, line: 3, count: 2 }]);
}

#[test]
fn arff_is_held_to_what_it_declares() {
    let head = "@relation r\n@attribute a numeric\n@attribute c {u,v}\n@attribute y numeric\n@data\n";
    let twice = bad(head.to_owned() + "{0 1, 1 v, 0 2}\n");
    assert!(matches!(twice, DataError::DuplicateIndex { line: 6, index: 0, .. }), "{twice}");
    let other = bad(head.to_owned() + "1,u,2\n3,w,4\n");
    assert!(matches!(other, DataError::Undeclared { line: 7, ref value, .. } if value == "w"), "{other}");
    assert!(good(head.to_owned() + "1,u,2\n3,v,4\n").features.contains(&"c=v".to_owned()));
}

#[test]
fn half_precision_arrays() {
    // 1, -2, 65504, 2^-24, 0.333…; written by hand as the format says.
    let values: [u16; 6] = [0x3c00, 0xc000, 0x7bff, 0x0001, 0x3555, 0x0000];
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, shape, kind, data) in [
        ("X", "(3, 2)", "<f2", values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()),
        ("y", "(3,)", "<f8", [1.5f64, 2.5, 3.5].iter().flat_map(|v| v.to_le_bytes()).collect()),
    ] {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(header.as_bytes()).unwrap();
        zip.write_all(&data).unwrap();
    }
    let table = good(zip.finish().unwrap().into_inner());
    assert_eq!(table.x[..4], [1.0, -2.0, 65_504.0, 2f64.powi(-24)]);
    assert!((table.x[4] - 1.0 / 3.0).abs() < 1e-4 && table.x[5] == 0.0);
}

#[test]
fn what_is_too_large_is_refused_before_it_is_there() {
    // A gigabyte of zeros in a megabyte.
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(b"a,y\n").unwrap();
    let chunk = vec![b'0'; 1 << 20];
    (0..64).for_each(|_| bomb.write_all(&chunk).unwrap());
    let bomb = bomb.finish().unwrap();
    let small = ReadOptions { limits: Limits { bytes: 16 << 20, ..Limits::default() }, ..ReadOptions::default() };
    let error = read(&bomb, &small).unwrap_err();
    assert!(matches!(error, DataError::TooManyBytes { .. }) && error.to_string().contains("--max-size"), "{error}");
    // Within the limit it is one field, and only its beginning is shown.
    let error = bad(&bomb);
    assert!(matches!(error, DataError::LongField { line: 2, .. }), "{error}");
    assert!(error.to_string().len() < 300, "{error}");
    let word = "x".repeat(5000);
    let error = bad(format!("a,y\n1,2\n{word},3\n4,5\n6,7\n"));
    assert!(matches!(error, DataError::NotNumber { line: 3, .. }) && error.to_string().len() < 300, "{error}");
    let wide = bad("1 4000000000:1\n2 1:1\n");
    assert!(matches!(wide, DataError::TooLarge { rows: 2, columns: 4_000_000_000, .. }), "{wide}");
}
