//! A small fast hash, for keys that nobody chooses to do harm. It is the same in every process; the standard one would
//! ask the kernel for randomness.

use std::hash::{BuildHasherDefault, Hasher as _};

use crate::Random;

/// For maps and sets.
pub type Hasher = BuildHasherDefault<Mix>;

/// The hash of what is written to it.
#[derive(Default)]
pub struct Mix(u64);

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// One number from many.
pub fn mix(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut mix = Mix::default();
    words.into_iter().for_each(|word| mix.write_u64(word));
    Random(mix.finish()).next()
}

/// FNV-1a: tells whether bytes are what they were, unless somebody means to deceive.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The same in 32 bits, for the names of files.
pub fn short_fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
