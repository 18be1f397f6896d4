//! A run with several classes: a directory for the path of each class, which is a run of its own, and beside them what
//! the classes say together.

use super::model_file::{MODEL_FORMAT, ModelFile};
use super::summary::{NAMED, NoiseFound, Summary, found, short, write_found, write_noise};
use super::{CLASS_PREFIX, MODEL_FILE, PATH_FILE, REPORT_FILE, SUMMARY_FILE, SUSPECTS_FILE};
use super::{replace, write_json, write_suspects};
use crate::dataset::DataError;
use crate::decide::Kept;
use crate::error::Result;
use crate::one_vs_rest::{Accuracy, OneVsRest, Verdict, combine};
use crate::prepare::Prepared;
use crate::suspects::Suspect;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The first field of `path.json`.
const FORMAT: &str = "agepath.classes/1";

/// The directory of class `k`; a class may have any name, a directory not.
pub fn class_dir(k: usize) -> String {
    format!("{CLASS_PREFIX}{k}")
}

/// The file of class `k` in place of `file`: the directory's name before its ending.
pub fn class_file(file: &Path, k: usize) -> PathBuf {
    let ending = file.extension().unwrap_or_default().to_string_lossy();
    file.with_extension(format!("{}.{ending}", class_dir(k)))
}

/// `path.json`: where the paths of the classes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClassesFile {
    format: String,
    target: String,
    pub classes: Vec<ClassPlace>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ClassPlace {
    pub name: String,
    pub directory: String,
}

impl ClassPlace {
    /// The directory in `dir`, which must be one of ours: a file may have been edited by hand.
    pub fn checked_directory(&self, dir: &Path) -> Result<PathBuf> {
        let ours = |k: &str| k.parse::<usize>().is_ok();
        match self.directory.strip_prefix(CLASS_PREFIX).is_some_and(ours) {
            true => Ok(dir.join(&self.directory)),
            false => {
                let message = format!("its class \"{}\" has the directory \"{}\"", self.name, self.directory);
                Err(DataError::NotPath { file: dir.join(PATH_FILE).display().to_string(), message }.into())
            }
        }
    }
}

impl ClassesFile {
    /// From the bytes of a file; none if it is no such file.
    pub fn parse(bytes: &[u8]) -> Option<ClassesFile> {
        let file: ClassesFile = serde_json::from_slice(bytes).ok()?;
        (file.format == FORMAT && !file.classes.is_empty()).then_some(file)
    }
}

/// `model.json`: the models of all classes; the largest prediction wins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassesModel {
    /// "agepath.model/1"
    pub format: String,
    /// Registry name of the model.
    pub model: String,
    /// Name of the target.
    pub target: String,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The model of each class against all others.
    pub one_vs_rest: Vec<ModelFile>,
}

/// The run of one class.
#[derive(Debug)]
pub struct ClassRun {
    /// Its figures.
    pub summary: Summary,
    kept: Option<(ModelFile, Verdict)>,
}

impl ClassRun {
    /// The run of one class with the age that is kept, if any is.
    pub fn new(prepared: &Prepared, kept: Option<&Kept>, summary: Summary) -> Result<ClassRun> {
        let parts = |kept: &Kept| -> Result<(ModelFile, Verdict)> {
            let model = ModelFile::new(prepared, kept.point(), kept.choice());
            Ok((model, Verdict::new(prepared, kept)?))
        };
        Ok(ClassRun { summary, kept: kept.map(parts).transpose()? })
    }

    /// What it says of the rows.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.kept.as_ref().map(|(_, verdict)| verdict)
    }
}

/// What the classes say together. A run that was stopped has fewer runs than classes.
#[derive(Debug)]
pub struct ClassesReport<'a> {
    /// Data and classes.
    pub classes: &'a OneVsRest,
    /// The figures.
    pub summary: ClassesSummary,
    /// The training rows, most suspicious first.
    pub suspects: Option<Vec<Suspect>>,
    /// What was typed to get here, if anything was.
    pub command: Option<&'a str>,
    model: Option<ClassesModel>,
}

impl<'a> ClassesReport<'a> {
    /// Puts the runs of the classes together.
    pub fn new(classes: &'a OneVsRest, runs: Vec<ClassRun>, command: Option<&'a str>) -> ClassesReport<'a> {
        let whole = runs.len() == classes.names().len();
        let (summaries, kept): (Vec<Summary>, Vec<_>) = runs.into_iter().map(|run| (run.summary, run.kept)).unzip();
        let kept: Option<Vec<(ModelFile, Verdict)>> = kept.into_iter().collect();
        let (models, verdicts) = kept.filter(|_| whole).map(|kept| kept.into_iter().unzip()).unzip();
        let verdicts: Option<Vec<Verdict>> = verdicts;
        let suspects = verdicts.as_ref().map(|v| combine(&classes.train, v));
        let accuracy = verdicts.as_ref().and_then(|v| classes.accuracy(v));
        let model = models.map(|models: Vec<ModelFile>| ClassesModel {
            format: MODEL_FORMAT.into(),
            model: models[0].model.clone(),
            target: models[0].target.clone(),
            classes: classes.names().to_vec(),
            one_vs_rest: models,
        });
        let ages = model.as_ref().map(|m| m.one_vs_rest.iter().map(|m| m.age).collect::<Vec<f64>>());
        let summary = ClassesSummary::new(classes, summaries, ages, suspects.as_deref(), accuracy);
        ClassesReport { classes, summary, suspects, command, model }
    }
}

/// The figures of a run with several classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassesSummary {
    /// Where the data came from.
    pub data: String,
    /// Name of the target.
    pub target: String,
    /// Training rows.
    pub rows: usize,
    /// Validation rows.
    pub validation_rows: usize,
    /// Features.
    pub features: usize,
    /// The classes whose paths were computed.
    pub classes: Vec<ClassSummary>,
    /// Classes in all.
    pub class_count: usize,
    /// How well the classes together predict rows that no path has seen.
    pub accuracy: Option<Accuracy>,
    /// The most suspicious training rows, as row numbers of the file counted from 0.
    pub suspects: Vec<usize>,
    /// How much of the injected noise was found.
    pub noise: Option<NoiseFound>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// The figures of one class against all others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSummary {
    /// Its name.
    pub class: String,
    /// Its directory.
    pub directory: String,
    /// The age that is kept: the chosen one, or the largest where none could be chosen.
    pub age: Option<f64>,
    /// The figures of its path.
    #[serde(flatten)]
    pub run: Summary,
}

impl ClassesSummary {
    fn new(
        classes: &OneVsRest,
        runs: Vec<Summary>,
        ages: Option<Vec<f64>>,
        suspects: Option<&[Suspect]>,
        accuracy: Option<Accuracy>,
    ) -> ClassesSummary {
        let rows = classes.train.rows();
        let class = |(k, run): (usize, Summary)| ClassSummary {
            class: classes.names()[k].clone(),
            directory: class_dir(k),
            age: ages.as_ref().map(|ages| ages[k]),
            run,
        };
        ClassesSummary {
            data: rows.name().into(),
            target: rows.target_name().into(),
            rows: rows.len(),
            validation_rows: classes.validation.as_ref().map_or(0, |held| held.rows().len()),
            features: rows.features().len(),
            classes: runs.into_iter().enumerate().map(class).collect(),
            class_count: classes.names().len(),
            accuracy,
            suspects: suspects.unwrap_or_default().iter().take(NAMED).map(|s| s.row).collect(),
            noise: found(classes.noise.as_ref(), suspects),
            notices: classes.notices.iter().map(ToString::to_string).collect(),
        }
    }

    /// Who chose the ages, in a word.
    pub(super) fn judge(&self) -> String {
        let chosen = self.classes.iter().find_map(|class| class.run.chosen.as_ref());
        chosen.map_or_else(String::new, |chosen| chosen.judge())
    }
}

impl Display for ClassesSummary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "data      {}: {} training rows, {} validation rows, {} features, {} classes in \"{}\"",
            self.data, self.rows, self.validation_rows, self.features, self.class_count, self.target
        )?;
        write_noise(self.noise.as_ref(), f)?;
        for class in &self.classes {
            class.fmt(f)?;
        }
        if self.classes.len() < self.class_count {
            return writeln!(f, "together  stopped after {} of {} classes", self.classes.len(), self.class_count);
        }
        if let Some(Accuracy { score, standard_error, ordinary_score }) = self.accuracy {
            let (judge, score, error) = (self.judge(), short(score), short(standard_error));
            write!(f, "together  {judge} accuracy {score} ± {error}")?;
            match ordinary_score {
                Some(score) => writeln!(f, ", against {} for the ordinary fits", short(score))?,
                None => writeln!(f)?,
            }
        }
        if !self.suspects.is_empty() {
            let rows: Vec<String> = self.suspects.iter().map(ToString::to_string).collect();
            writeln!(f, "suspects  rows {}, …", rows.join(", "))?;
        }
        write_found(self.noise.as_ref(), f)
    }
}

impl Display for ClassSummary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let run = &self.run;
        write!(f, "class     {}: ", self.class)?;
        match (&run.chosen, self.age) {
            (Some(chosen), _) if chosen.ordinary => writeln!(f, "{}", run.why.as_deref().unwrap_or_default())?,
            (Some(chosen), _) => {
                let (score, error) = (short(chosen.score), short(chosen.standard_error));
                let (judge, metric, fate) = (chosen.judge(), &chosen.metric, chosen.fate());
                write!(f, "age {}, {judge} {metric} {score} ± {error}", short(chosen.age))?;
                writeln!(f, ", {} training rows {fate}", chosen.excluded)?;
            }
            (None, Some(age)) => writeln!(f, "no age could be chosen; the largest is kept, {}", short(age))?,
            (None, None) => writeln!(f, "no age chosen")?,
        }
        let (low, high) = run.ages;
        let (kkt, checked) = (run.max_kkt, run.checked);
        // Why a path ends early is in its own directory.
        let end = run.end.split(':').next().unwrap_or_default();
        writeln!(
            f,
            "          {} over ages {} to {}: {end}; {} critical points, {} of them jumps; {:.2} s; KKT {kkt:.1e} over {checked}",
            run.model,
            short(low),
            short(high),
            run.events,
            run.jumps,
            run.seconds
        )
    }
}

/// Writes what the classes say together, and returns the names of the files.
pub fn write_classes(dir: &Path, report: &ClassesReport) -> Result<Vec<&'static str>> {
    let summary = &report.summary;
    let place = |class: &ClassSummary| ClassPlace { name: class.class.clone(), directory: class.directory.clone() };
    let classes = summary.classes.iter().map(place).collect();
    write_json(&dir.join(PATH_FILE), &ClassesFile { format: FORMAT.into(), target: summary.target.clone(), classes })?;
    write_json(&dir.join(SUMMARY_FILE), summary)?;
    let mut files = vec![PATH_FILE, SUMMARY_FILE];
    if let (Some(suspects), Some(model)) = (&report.suspects, &report.model) {
        write_suspects(&dir.join(SUSPECTS_FILE), suspects)?;
        write_json(&dir.join(MODEL_FILE), model)?;
        files.extend([SUSPECTS_FILE, MODEL_FILE]);
    }
    let page = report.html();
    replace(&dir.join(REPORT_FILE), |out| out.write_all(page.as_bytes()))?;
    files.push(REPORT_FILE);
    Ok(files)
}
