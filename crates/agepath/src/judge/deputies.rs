//! Rows that stand for all others where there are more than a judgement needs.
//!
//! The scale of ten thousand residuals is known to one per cent and a mean error to less: more rows make the search for fits and the
//! comparison of candidates slower, not better. What is chosen is then followed, certified and told over all rows.

use crate::dataset::Dataset;
use crate::error::Result;
use crate::prepare::{Prepared, build};
use crate::problem::Problem;
use rand::SeedableRng;
use rand::seq::index;

/// At most so many rows search and judge.
const MOST: usize = 10_000;

/// Some rows of a problem, in their order, and the problem that they pose.
pub(super) struct Deputies {
    pub train: Dataset,
    pub problem: Problem,
}

impl Deputies {
    /// Drawn at random; none where all rows can take part.
    pub fn of(prepared: &Prepared, seed: u64) -> Result<Option<Deputies>> {
        let n = prepared.train.len();
        if n <= MOST {
            return Ok(None);
        }
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut rows = index::sample(&mut rng, n, MOST).into_vec();
        rows.sort_unstable();
        let train = prepared.train.subset(&rows);
        let problem = build(&train, &prepared.scaling, prepared.problem.has_intercept(), &prepared.spec)?;
        Ok(Some(Deputies { train, problem }))
    }
}
