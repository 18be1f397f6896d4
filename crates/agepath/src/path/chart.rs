//! The path's own clock t: u = 1/λ = (e^t − 1)/c, so t = 0 is λ = ∞ and, once λ ≪ c, t is −ln λ + ln c. One smooth
//! clock serves the whole way down from infinity, and equal steps of t are equal ratios of age where it matters.

/// The clock with its constant c, the age around which it turns from 1/λ to −ln λ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chart {
    c: f64,
}

impl Chart {
    pub fn new(c: f64) -> Self {
        Chart { c }
    }

    /// u = 1/λ at time t.
    pub fn inverse_age(&self, t: f64) -> f64 {
        t.exp_m1() / self.c
    }

    /// du/dt at time t.
    pub fn speed(&self, t: f64) -> f64 {
        t.exp() / self.c
    }

    /// λ at time t; infinite at t = 0.
    pub fn age(&self, t: f64) -> f64 {
        self.c / t.exp_m1()
    }

    /// t at age λ.
    pub fn time(&self, age: f64) -> f64 {
        (self.c / age).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_from_infinity_and_back() {
        let chart = Chart::new(20.0);
        assert_eq!(chart.inverse_age(0.0), 0.0);
        assert_eq!(chart.age(0.0), f64::INFINITY);
        for age in [1e-3, 0.1, 1.0, 20.0, 1e6] {
            let t = chart.time(age);
            assert!((chart.age(t) / age - 1.0).abs() < 1e-12);
            let slope = (chart.inverse_age(t + 1e-6) - chart.inverse_age(t - 1e-6)) / 2e-6;
            assert!((chart.speed(t) / slope - 1.0).abs() < 1e-6);
        }
    }
}
