//! A deterministic random generator, seeded by what its numbers are for (SplitMix64).
//!
//! Every account, post and day has a stream of its own, so each can be computed alone and in any order.

/// A stream of random numbers that depends only on its seed.
#[derive(Debug, Clone)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates the stream for the subject that `parts` identify.
    pub fn new(seed: u64, parts: &[u64]) -> Self {
        let mut state = mix(seed ^ 0x7469_6465_6d61_726b);
        for &part in parts {
            state = mix(state ^ mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        SeededRng(state)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Draws from [0, 1).
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws from [low, high).
    pub fn next_range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next_f64()
    }

    /// Draws an integer below `bound`, at least 1.
    pub fn next_below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }

    /// Returns true with this probability.
    pub fn next_bool(&mut self, probability: f64) -> bool {
        self.next_f64() < probability
    }

    /// Draws an item.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.next_below(items.len() as u64) as usize]
    }

    /// Draws from a standard normal distribution, approximately.
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
    fn stream_depends_on_seed_and_parts_alone() {
        let draw = |parts: &[u64]| SeededRng::new(7, parts).next_u64();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1]), draw(&[1, 0]));
        assert_ne!(SeededRng::new(7, &[1]).next_u64(), SeededRng::new(8, &[1]).next_u64());
    }

    #[test]
    fn draws_have_the_promised_distribution() {
        let mut rng = SeededRng::new(1, &[]);
        let draws: Vec<f64> = (0..10_000).map(|_| rng.next_normal()).collect();
        let mean = draws.iter().sum::<f64>() / 10_000.0;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "mean {mean}, variance {variance}");
        assert!((0..1000).all(|_| rng.next_below(3) < 3 && (0.0..1.0).contains(&rng.next_f64())));
    }
}
