//! The laws of `agepath::laws` over every registered loss and pacing, and factors that break them.

use agepath::laws::{check_loss, check_pacing, check_pair};
use agepath::loss::{self, Loss, LossAt, Poisson, Squared, TargetKind};
use agepath::pacing::{self, Cut, Cuts, Linear, Pacing, PacingSpec, WeightAt};
use agepath::registry::{Row, Values};

/// Every member with its defaults, and with other values of each of its parameters.
fn members<T: ?Sized>(rows: Vec<Row<T>>) -> Vec<Box<T>> {
    let mut out = Vec::new();
    for row in rows {
        out.push(row.build(&Values::default()).unwrap());
        for parameter in row.parameters {
            let other = |value: f64| row.build(&Values::default().with(parameter.name, value)).unwrap();
            out.extend(parameter.range.examples().map(other));
        }
    }
    out
}

#[test]
fn every_pacing_obeys() {
    for pacing in members(pacing::REGISTRY.rows()) {
        check_pacing(&*pacing).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

#[test]
fn every_loss_obeys() {
    for loss in members(loss::REGISTRY.rows()) {
        check_loss(&*loss).unwrap_or_else(|broken| panic!("{broken}"));
    }
}

#[test]
fn every_pair_obeys() {
    for loss in members(loss::REGISTRY.rows()) {
        for pacing in members(pacing::REGISTRY.rows()) {
            check_pair(&*loss, &*pacing).unwrap_or_else(|broken| panic!("{broken}"));
        }
    }
}

#[test]
fn parameters_of_one_name_are_one_parameter() {
    let losses = loss::REGISTRY.rows().iter().flat_map(|row| row.parameters).copied().collect::<Vec<_>>();
    let pacings = pacing::REGISTRY.rows().iter().flat_map(|row| row.parameters).copied().collect::<Vec<_>>();
    for list in [losses, pacings] {
        for a in &list {
            assert!(a.range.contains(a.default), "{a:?}");
            assert!(
                list.iter().all(|b| (a.name == b.name) == (a.option == b.option) && (a.name != b.name || a == b)),
                "{a:?}"
            );
        }
    }
}

/// What is wrong with a linear pacing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    ByLoss,
    ByAge,
    Threshold,
    CutSlope,
    Primitive,
    Weight,
    Continuity,
}

impl Wrong {
    fn off(self, what: Wrong, by: f64) -> f64 {
        if self == what { by } else { 0.0 }
    }
}

impl Pacing for Wrong {
    fn spec(&self) -> PacingSpec {
        Linear.spec()
    }
    fn zones(&self) -> &'static [&'static str] {
        Linear.zones()
    }
    fn cuts(&self, u: f64) -> Cuts {
        let factor = 1.0 + self.off(Wrong::Threshold, 1e-3);
        Cuts::new(&[Cut { value: u * factor, slope: factor + self.off(Wrong::CutSlope, 1e-3) }])
    }
    fn at(&self, zone: u8, loss: f64, u: f64) -> WeightAt {
        let at = Linear.at(zone, loss, u);
        WeightAt {
            value: at.value - self.off(Wrong::Weight, 1e-3 * at.value),
            by_loss: at.by_loss * (1.0 - self.off(Wrong::Weight, 1e-3)) - self.off(Wrong::ByLoss, 1e-3),
            by_inverse_age: at.by_inverse_age * (1.0 - self.off(Wrong::Weight, 1e-3)) + self.off(Wrong::ByAge, 1e-3),
        }
    }
    fn primitive(&self, loss: f64, u: f64) -> f64 {
        Linear.primitive(loss, u) * (1.0 - self.off(Wrong::Weight, 1e-3)) + self.off(Wrong::Primitive, 1e-3)
    }
    fn regularizer(&self, v: f64, age: f64) -> f64 {
        Linear.regularizer(v, age)
    }
    fn is_continuous(&self) -> bool {
        *self != Wrong::Continuity
    }
}

#[test]
fn a_wrong_pacing_is_found_out() {
    check_pacing(&Wrong::Nothing).unwrap();
    let wrong = [
        (Wrong::ByLoss, "by_loss"),
        (Wrong::ByAge, "by_inverse_age"),
        (Wrong::Threshold, "both sides of a threshold"),
        (Wrong::CutSlope, "a cut's slope"),
        (Wrong::Primitive, "the integral of the weight"),
        (Wrong::Weight, "minimises"),
        (Wrong::Continuity, "drops at a threshold"),
    ];
    for (pacing, law) in wrong {
        let broken = check_pacing(&pacing).unwrap_err();
        assert!(broken.to_string().contains(law), "{broken}");
        assert!(broken.to_string().contains("age"), "{broken}");
    }
}

/// A squared loss with a slope, a curvature or a value that is a little wrong.
#[derive(Debug)]
struct Off(f64, f64, f64);

impl Loss for Off {
    fn name(&self) -> &'static str {
        "off"
    }
    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let at = Squared.at(z, y);
        LossAt { value: at.value + self.0, slope: at.slope + self.1, curvature: at.curvature + self.2 }
    }
    fn at(&self, z: f64, y: f64) -> LossAt {
        self.at_piece(0, z, y)
    }
    fn slope_unit(&self) -> f64 {
        2.0
    }
    fn target(&self) -> TargetKind {
        TargetKind::Real
    }
}

#[test]
fn a_wrong_loss_is_found_out() {
    check_loss(&Off(0.0, 0.0, 0.0)).unwrap();
    let wrong =
        [(Off(-1.0, 0.0, 0.0), "below 0"), (Off(0.0, 1e-4, 0.0), "slope is"), (Off(0.0, 0.0, 1e-4), "curvature is")];
    for (loss, law) in wrong {
        let broken = check_loss(&loss).unwrap_err().to_string();
        assert!(broken.contains(law), "{broken}");
    }
    // The slope of one and the pacing of the other: what the tracker adds up.
    let broken = check_pair(&Off(0.0, 1e-2, 0.0), &Linear).unwrap_err().to_string();
    assert!(broken.contains("psi"), "{broken}");
}

#[test]
fn a_registered_name_works_like_any_other_and_cannot_be_taken_twice() {
    let row: Row<dyn Pacing> =
        Row { name: "wrong", summary: "for this test", parameters: &[], build: &|_| Box::new(Wrong::Nothing) };
    pacing::REGISTRY.register(row).unwrap();
    let spec: PacingSpec = serde_json::from_str(r#"{"kind": "wrong"}"#).unwrap();
    assert_eq!(spec.build().unwrap().zones(), ["E", "D"]);
    assert!(pacing::REGISTRY.register(row).unwrap_err().to_string().contains("not taken"));
}

#[test]
fn files_have_the_words_they_always_had() {
    let mixture: PacingSpec = serde_json::from_str(r#"{"kind":"mixture","gamma":0.25}"#).unwrap();
    assert_eq!(mixture.values.given("gamma"), Some(0.25));
    assert_eq!(serde_json::to_string(&mixture).unwrap(), r#"{"kind":"mixture","gamma":0.25}"#);
    assert_eq!(serde_json::to_string(&Linear.spec()).unwrap(), r#"{"kind":"linear"}"#);
    for wrong in [r#"{"kind":"linaer"}"#, r#"{"kind":"log","gamma":1}"#, r#"{"gamma":1}"#] {
        assert!(serde_json::from_str::<PacingSpec>(wrong).is_err(), "{wrong}");
    }
    let parameters: loss::LossParameters = serde_json::from_str(r#"{"c":2.0,"epsilon":0.1,"quantile":0.3}"#).unwrap();
    let text = serde_json::to_string(&parameters).unwrap();
    assert!(text.starts_with(r#"{"c":2.0,"epsilon":0.1,"quantile":0.3"#), "{text}");
    let range = loss::by_name("quantile", &parameters.set("quantile", 1.0).unwrap()).unwrap_err().to_string();
    assert_eq!(range, "quantile = 1: a number above 0 and below 1");
}

#[test]
fn the_poisson_loss_is_right_where_formulas_cancel() {
    // e^d − 1 − d = d²/2 + d³/6 + …, with d = z − ln y.
    for y in [1e-3, 1.0, 7.0, 1e6] {
        for d in [1e-9f64, -1e-6, 1e-3, 9.9e-3, 1.01e-2, -0.5] {
            let z = f64::ln(y) + d;
            let d = z - f64::ln(y);
            let series: f64 = (2..30)
                .scan(1.0, |term, k| {
                    *term *= d / f64::from(k);
                    Some(*term)
                })
                .sum::<f64>()
                * d;
            let at = Poisson.at(z, y);
            assert!((at.value - y * series).abs() <= 1e-12 * y * series, "{} against {}", at.value, y * series);
        }
    }
    assert!(Poisson.at(1e4, 3.0).slope.powi(2).is_finite() && Poisson.at(-1e4, 3.0).value.is_finite());
    assert!(Poisson.at(0.0, 0.0).value == 1.0 && Poisson.needs(-1.0).is_some());
}
