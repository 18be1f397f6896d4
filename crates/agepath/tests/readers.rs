//! Every format with good, odd and hostile files. `tests/data` was written by numpy and pandas.

use agepath::dataset::{DataError, Encoding, Impute, Limits, Notice, Pick, ReadOptions, Table, read_from};
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

fn read(bytes: &[u8], options: &ReadOptions) -> Result<Table, DataError> {
    read_from(bytes, "t", options)
}

fn good(bytes: impl AsRef<[u8]>) -> Table {
    read(bytes.as_ref(), &ReadOptions::default()).unwrap()
}

fn bad(bytes: impl AsRef<[u8]>) -> DataError {
    read(bytes.as_ref(), &ReadOptions::default()).unwrap_err()
}

fn impute() -> ReadOptions {
    ReadOptions { impute: Impute::Median, ..ReadOptions::default() }
}

fn strict() -> ReadOptions {
    ReadOptions { strict: true, ..ReadOptions::default() }
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn delimited_text_with_odd_but_clear_shapes() {
    let expected = [1.0, 2.0, 4.0, 5.0];
    for text in [
        "a,b,y\r\n1,2,3\n4,5,6\r\n",
        "\u{feff}a;b;y\n1;2;3\n4;5;6",
        "\"a\",\"b\",\"y\"\n\"1\",\"2\",\"3\"\n4,5,6\n",
        "a\tb\ty\n1\t2\t3\n\n4\t5\t6\n\n",
        " a , b , y \n 1 , 2 , 3 \n 4 , 5 , 6 ",
        "a,b,y\n1e0,+2,3\n4.0,5.,6\n",
        "a,b,y\r1,2,3\r4,5,6\r",
    ] {
        assert_eq!(good(text).x, expected, "{text:?}");
        assert_eq!(good(gzip(text.as_bytes())).x, expected, "{text:?}");
    }
    // A delimiter inside quotes is no delimiter, and a quoted header may hold one.
    let quoted = good("\"length, cm\",b,y\n1,2,\"x, y\"\n4,5,z\n");
    assert_eq!((quoted.features[0].as_str(), quoted.labels[0].as_str()), ("length, cm", "x, y"));
}

#[test]
fn many_columns_are_read_in_no_time() {
    let d = 100_000;
    let mut text = (0..d).map(|j| format!("c{j}")).collect::<Vec<_>>().join(",") + ",y\n";
    for i in 0..3 {
        text += &(0..d).map(|j| ((i * j) % 7).to_string()).collect::<Vec<_>>().join(",");
        text += &format!(",{i}\n");
    }
    assert!(matches!(bad(&text), DataError::TooManyColumns { columns: 100_001, limit: 50_000, .. }));
    let more = ReadOptions { limits: Limits { columns: d, ..Limits::default() }, ..ReadOptions::default() };
    let table = read(text.as_bytes(), &more).unwrap();
    assert_eq!((table.features.len(), table.x.len()), (d, 3 * d));
    assert_eq!(table.x[2 * d + 5], 3.0);
    let twice = text.replacen("c99999", "c7", 1);
    let twice = read(twice.as_bytes(), &more).unwrap_err();
    assert!(matches!(twice, DataError::DuplicateColumn { column, .. } if column == "c7"));
    // Whoever names columns may choose among any number of them.
    let pick = Pick { columns: vec!["c7".into(), "c9".into()], ..Pick::default() };
    let some = read(text.as_bytes(), &ReadOptions { pick, ..ReadOptions::default() }).unwrap();
    assert_eq!(some.features, ["c7", "c9"]);
}

#[test]
fn hostile_text_is_refused_with_its_place() {
    assert!(matches!(bad("a,b,y\n1,2,3\n4,5\n"), DataError::Ragged { line: 3, expected: 3, found: 2, .. }));
    assert!(matches!(bad("a,b,y\n1,2,3\n4,5,6,7\n"), DataError::Ragged { line: 3, found: 4, .. }));
    assert!(matches!(bad("a,a,y\n1,2,3\n"), DataError::DuplicateColumn { .. }));
    assert!(matches!(bad(b"a,y\n\xff\xfe,2\n3,4\n"), DataError::NotText { line: 2, .. }));
    assert!(matches!(bad("\u{feff}"), DataError::Empty { .. }));
    assert!(matches!(bad("\n\n"), DataError::Empty { .. }));
    let whole = gzip(b"a,y\n1,2\n3,4\n");
    for cut in [3, 10, whole.len() / 2, whole.len() - 1] {
        assert!(matches!(bad(&whole[..cut]), DataError::Compression { .. }), "{cut}");
    }
    let mut flipped = whole.clone();
    flipped[whole.len() - 6] ^= 1;
    assert!(matches!(bad(flipped), DataError::Compression { .. }));
    // A quote that never closes swallows the rest into one field.
    assert!(bad("a,b,y\n1,\"2,3\n4,5,6\n").to_string().contains("line 2"));
}

#[test]
fn categories_become_columns_with_names() {
    let text = "colour,size,y\nred,1,2\nblue,2,3\nred,3,4\n";
    let table = good(text);
    assert_eq!(table.features, ["colour=blue", "colour=red", "size"]);
    assert_eq!(table.x, [0.0, 1.0, 1.0, 1.0, 0.0, 2.0, 0.0, 1.0, 3.0]);
    assert_eq!(table.notices, [Notice::Categories { file: "t".into(), columns: vec!["colour".into()] }]);
    let refused = read(text.as_bytes(), &strict()).unwrap_err();
    assert!(matches!(refused, DataError::NotNumber { line: 2, ref column, .. } if column == "colour"), "{refused}");

    // Another file follows the first: columns in any order, categories by name, others ignored.
    let follow = ReadOptions { encoding: Some(table.encoding.clone()), ..ReadOptions::default() };
    let other = read(b"size,extra,colour,y\n9,x,blue,1\n", &follow).unwrap();
    assert_eq!((other.features, other.x), (table.features.clone(), vec![1.0, 0.0, 9.0]));
    let unknown = read(b"size,colour,y\n9,green,1\n", &follow).unwrap_err();
    assert!(matches!(unknown, DataError::UnknownLevel { line: 2, ref value, .. } if value == "green"), "{unknown}");
    let absent = ReadOptions { target: Some("y".into()), target_optional: true, ..follow };
    assert!(read(b"size,colour\n9,red\n", &absent).unwrap().labels.is_empty());

    let names: String = (0..150).map(|i| format!("n{i},{i},{}\n", i % 3)).collect();
    assert!(matches!(bad("name,a,y\n".to_owned() + &names), DataError::TooManyLevels { count: 150, .. }));
    // A word among numbers is a mistake, not a category.
    assert!(matches!(bad("a,y\n1,2\n2,3\nthree,4\n"), DataError::NotNumber { line: 4, .. }));
}

#[test]
fn missing_values_are_refused_or_filled_in() {
    let text = "a,c,y\n1,u,2\n,v,3\n5,?,4\n9,u,5\n";
    assert!(matches!(bad(text), DataError::Missing { line: 3, ref column, .. } if column == "a"));
    let table = read(text.as_bytes(), &impute()).unwrap();
    assert_eq!(table.features, ["a", "c=u", "c=v"]);
    assert_eq!(table.x, [1.0, 1.0, 0.0, 5.0, 0.0, 1.0, 5.0, 1.0, 0.0, 9.0, 1.0, 0.0]);
    assert!(table.notices.contains(&Notice::Imputed { file: "t".into(), columns: vec!["a".into(), "c".into()] }));
    // The training rows' median, not this file's.
    let follow = ReadOptions { encoding: Some(table.encoding), ..ReadOptions::default() };
    assert_eq!(read(b"a,c,y\nNA,v,1\n100,v,1\n", &follow).unwrap().x[0], 5.0);
    // A target cannot be made up.
    let target = read(b"a,y\n1,\n2,3\n", &impute()).unwrap_err();
    assert!(matches!(target, DataError::MissingTarget { line: 2, count: 1, rows: 2, .. }), "{target}");
    assert!(!target.to_string().contains("--impute"), "{target}");
    assert!(
        matches!(read(b"a,b,y\n1,,3\n2,,4\n", &impute()).unwrap_err(), DataError::Missing { column, .. } if column == "b")
    );
}

#[test]
fn libsvm() {
    let text = "# comment\n+1 1:0.5 3:2\n-1 2:1e3 # more\n\n+1\n";
    let table = good(text);
    assert_eq!(table.features, ["f1", "f2", "f3"]);
    assert_eq!(table.x, [0.5, 0.0, 2.0, 0.0, 1000.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(
        (table.labels.as_slice(), table.lines.as_slice()),
        (&["+1", "-1", "+1"].map(String::from)[..], &[2, 3, 5][..])
    );
    assert_eq!(good(gzip(text.as_bytes())).x, table.x);
    assert_eq!(good("1 qid:3 1:2\n0 qid:3 1:1\n").x, [2.0, 1.0]);
    // Later rows may leave out the last features.
    let follow = ReadOptions { encoding: Some(table.encoding), ..ReadOptions::default() };
    assert_eq!(read(b"+1 1:4\n", &follow).unwrap().x, [4.0, 0.0, 0.0]);

    assert!(matches!(bad("1 1:2\n1 0:2\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad("1 1:2\n1 3:1 2:1\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad("1 1:2\n1 2:1 2:1\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad("1 1:2\n1 word\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad("1 1:2\n1 2:inf\n"), DataError::NotFinite { line: 2, ref column, .. } if column == "f2"));
    assert!(matches!(bad("1 1:2\nx 2:1\n"), DataError::NotNumber { line: 2, .. }));
    assert!(matches!(bad("1 1:2\n1 99999999999:1\n"), DataError::TooLarge { .. }));
}

#[test]
fn arff() {
    let text = "% made up\n@RELATION things\n\n@attribute 'the size' NUMERIC\n@attribute colour {red, 'light blue'}\n\
                @attribute y real\n@DATA\n1.5,red,2\n% between\n2,'light blue',3\r\n";
    let table = good(text);
    assert_eq!(table.features, ["the size", "colour=light blue", "colour=red"]);
    assert_eq!(table.x, [1.5, 0.0, 1.0, 2.0, 1.0, 0.0]);
    assert_eq!((table.labels.as_slice(), table.lines.as_slice()), (&["2", "3"].map(String::from)[..], &[8, 10][..]));
    assert_eq!(good(gzip(text.as_bytes())).x, table.x);
    let sparse =
        "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute c {no,yes}\n@data\n{0 3, 2 yes}\n{}\n";
    assert_eq!(
        (good(sparse).x, good(sparse).labels),
        (vec![3.0, 0.0, 0.0, 0.0], vec!["yes".to_owned(), "no".to_owned()])
    );

    let head = "@relation r\n@attribute a numeric\n@attribute y numeric\n@data\n";
    let with = |rows: &str| head.to_owned() + rows;
    assert!(matches!(bad(with("1,2\n3\n")), DataError::Ragged { line: 6, expected: 2, found: 1, .. }));
    assert!(matches!(bad(with("1,2\nx,3\n")), DataError::NotNumber { line: 6, ref column, .. } if column == "a"));
    assert!(matches!(bad(with("1,2\n?,3\n")), DataError::Missing { line: 6, ref value, .. } if value == "?"));
    assert_eq!(read(with("1,2\n?,3\n").as_bytes(), &impute()).unwrap().x, [1.0, 1.0]);
    assert!(matches!(bad(with("'1,2\n")), DataError::NotEntry { line: 5, .. }));
    assert!(matches!(bad(with("")), DataError::Empty { .. }));
    assert!(matches!(bad("@relation r\n@attribute a date\n@data\n1\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad("@relation r\nnonsense\n"), DataError::NotEntry { line: 2, .. }));
    assert!(matches!(bad(head.replace('y', "a") + "1,2\n"), DataError::DuplicateColumn { .. }));
}

#[test]
fn npz() {
    let table = good(file("fortran.npz"));
    assert_eq!((table.features.join(","), table.target_name.as_str()), ("x0,x1,x2".to_owned(), "y"));
    assert_eq!(table.x, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.5, 0.0, 0.0, 1.0]);
    assert_eq!(table.labels, ["no", "yes", "no", "yés"]);
    let table = good(file("integers.npz"));
    assert_eq!((table.features.join(","), table.labels.join(",")), ("p,q,r".to_owned(), "3,1,2,7".to_owned()));
    assert_eq!(table.x[6..9], [7.0, 8.0, 9.0]);

    assert!(bad(file("mismatch.npz")).to_string().contains("4 rows, y has 2"));
    assert!(matches!(bad(file("nan.npz")), DataError::Missing { line: 2, ref column, .. } if column == "x1"));
    assert_eq!(read(&file("nan.npz"), &impute()).unwrap().x[4], 2.0);
    assert!(bad(file("objects.npz")).to_string().contains("not an array"));
    let whole = file("fortran.npz");
    for cut in [4, 30, 100, whole.len() / 2, whole.len() - 1] {
        assert!(matches!(bad(&whole[..cut]), DataError::NotArchive { .. }), "{cut}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    let table = good(file("good.parquet"));
    assert_eq!(table.features, ["a", "b", "flag", "colour=blue", "colour=green", "colour=red"]);
    assert_eq!(table.x[..6], [1.0, 0.5, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(table.labels, ["1.25", "2.5", "3.75", "5"]);
    let options = ReadOptions { target: Some("colour".into()), ..ReadOptions::default() };
    assert_eq!(read(&file("good.parquet"), &options).unwrap().labels, ["red", "blue", "red", "green"]);
    assert!(matches!(read(&file("good.parquet"), &strict()).unwrap_err(), DataError::NotNumber { .. }));

    assert!(matches!(bad(file("missing.parquet")), DataError::Missing { line: 3, ref column, .. } if column == "b"));
    assert_eq!(read(&file("missing.parquet"), &impute()).unwrap().x[2 * 6 + 1], 1.5);
    assert!(matches!(bad(file("infinite.parquet")), DataError::NotFinite { line: 2, ref column, .. } if column == "b"));
    let whole = file("good.parquet");
    for cut in [4, 50, whole.len() / 2, whole.len() - 1] {
        assert!(matches!(bad(&whole[..cut]), DataError::NotArchive { .. }), "{cut}");
    }
}

#[test]
fn an_encoding_survives_json() {
    let table = read(b"a,c,y\n1,u,2\n,v,3\n5,w,4\n", &impute()).unwrap();
    let text = serde_json::to_string(&table.encoding).unwrap();
    assert_eq!(serde_json::from_str::<Encoding>(&text).unwrap(), table.encoding);
    assert_eq!(table.encoding.features(), table.features);
}
