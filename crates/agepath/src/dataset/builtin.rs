//! Data sets that come with the program; see `data/README.md` for where they are from.

use super::{ReadOptions, Table, read_from};
use crate::error::{Error, Result};

/// Name and bytes of each embedded data set; the target is the last column.
pub const BUILTIN: &[(&str, &[u8])] = &[
    ("diabetes", include_bytes!("../../data/diabetes.csv.gz")),
    ("breast_cancer", include_bytes!("../../data/breast_cancer.csv.gz")),
    ("digits", include_bytes!("../../data/digits.csv.gz")),
];

/// An embedded data set by name.
pub fn builtin(name: &str, options: &ReadOptions) -> Result<Table> {
    let Some((name, bytes)) = BUILTIN.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> = BUILTIN.iter().map(|(name, _)| *name).collect();
        return Err(Error::UnknownName { what: "built-in data set", name: name.into(), choices: names.join(", ") });
    };
    Ok(read_from(*bytes, name, options)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::TargetKind;

    #[test]
    fn every_embedded_set_reads() {
        let shapes = [("diabetes", 442, 10), ("breast_cancer", 569, 30), ("digits", 1797, 64)];
        for (name, n, d) in shapes {
            let table = builtin(name, &ReadOptions::default()).unwrap();
            let set = table.dataset(if name == "breast_cancer" { table.guess() } else { TargetKind::Real }).unwrap();
            assert_eq!((set.len(), set.features().len()), (n, d), "{name}");
        }
        let cancer = builtin("breast_cancer", &ReadOptions::default()).unwrap();
        assert_eq!(cancer.guess(), TargetKind::Sign);
        let digits = builtin("digits", &ReadOptions::default()).unwrap();
        assert_eq!((digits.guess(), digits.many_classes().unwrap().unwrap().names().len()), (TargetKind::Sign, 10));
    }

    #[test]
    fn unknown_names_list_the_choices() {
        let error = builtin("iris", &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("iris") && error.contains("diabetes"), "{error}");
    }
}
