//! Chance that always falls the same way: numbers drawn from a seed and the name of what they are for.
//!
//! Nothing depends on the order in which things are asked, so any account, post or day can be computed alone.

/// A stream of numbers that depends on nothing but where it was started.
#[derive(Debug, Clone)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Starts a stream for the thing that these numbers name.
    pub fn new(seed: u64, parts: &[u64]) -> Self {
        let mut state = mix(seed ^ 0x7469_6465_6d61_726b);
        for &part in parts {
            state = mix(state ^ mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        SeededRng(state)
    }

    /// Draws 64 bits (SplitMix64).
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Draws from 0 up to, not including, 1.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws between two numbers.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next_f64()
    }

    /// Draws a whole number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    /// Whether something happens that happens with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.next_f64() < probability
    }

    /// Draws one of some things.
    pub fn choose<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len() as u64) as usize]
    }

    /// Draws from a normal distribution of mean 0 and deviation 1, nearly.
    pub fn next_normal(&mut self) -> f64 {
        (0..12).map(|_| self.next_f64()).sum::<f64>() - 6.0
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_their_names_alone() {
        let draw = |parts: &[u64]| SeededRng::new(7, parts).next_u64();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1]), draw(&[1, 0]));
        assert_ne!(SeededRng::new(7, &[1]).next_u64(), SeededRng::new(8, &[1]).next_u64());
    }

    #[test]
    fn draws_are_spread_as_they_say() {
        let mut dice = SeededRng::new(1, &[]);
        let draws: Vec<f64> = (0..10_000).map(|_| dice.next_normal()).collect();
        let mean = draws.iter().sum::<f64>() / 10_000.0;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "mean {mean}, variance {variance}");
        assert!((0..1000).all(|_| dice.below(3) < 3 && (0.0..1.0).contains(&dice.next_f64())));
    }
}
