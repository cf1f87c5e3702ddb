#![no_std]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// Sums what it is given, without `std`.
#[derive(Default)]
pub struct Sum(AtomicU32);

impl Sum {
    pub fn add_all(&self, numbers: &Vec<u32>) {
        for number in numbers {
            self.0.fetch_add(*number, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
