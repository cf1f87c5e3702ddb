//! A hash for keys of a few small numbers, of which a search looks up one for each event or more. Not for keys that
//! somebody else chooses.

use std::hash::{BuildHasherDefault, Hasher};

pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Multiply>>;

/// Multiplies and folds, a word at a time.
#[derive(Default)]
pub struct Multiply(u64);

impl Multiply {
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.add(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
