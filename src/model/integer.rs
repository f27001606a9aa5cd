//! Integers that files and platforms write as floats.

/// From here on a float may be the rounding of another integer.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Whether a float may have lost digits of an integer.
pub fn has_lost_digits(float: f64) -> bool {
    float.abs() >= FIRST_INEXACT
}

/// Converts a float without a fraction that has lost no digits.
pub fn exact_integer(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && !has_lost_digits(float)).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_integers_are_converted() {
        let largest = 9_007_199_254_740_991;
        assert_eq!(exact_integer(largest as f64), Some(largest));
        assert_eq!(exact_integer(-largest as f64), Some(-largest));
        // The next two integers are the same float.
        assert_eq!((largest + 1) as f64, (largest + 2) as f64);
        for float in [(largest + 1) as f64, 1e300, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(exact_integer(float), None, "{float}");
        }
    }
}
