//! Small fast hashes. They are the same in every process, and they do not resist an attacker who chooses the keys.
//!
//! [`Mix`] and [`mix`] serve the runtime alone. The hash of the standard library would ask the kernel for randomness.

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

/// The FNV-1a hash of the bytes, in 64 bits. It shows accidental changes, and no deliberate ones.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The FNV-1a hash in 32 bits, for the names of files.
pub fn short_fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
