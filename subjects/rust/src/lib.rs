//! What the subjects share. Each of them is a program of its own in `src/bin`; the feature `fixed` makes the
//! corrected programs.

pub mod collections;

use std::cell::UnsafeCell;
use std::process::exit;
use std::sync::{Mutex, MutexGuard};

/// This is the corrected program.
pub const FIXED: bool = cfg!(feature = "fixed");

/// A number that the command line may set.
pub struct Size {
    pub name: &'static str,
    pub default: usize,
    pub low: usize,
    pub high: usize,
}

pub const fn size(name: &'static str, default: usize, low: usize, high: usize) -> Size {
    Size { name, default, low, high }
}

/// Reads the sizes from the command line: optional numbers in this order. A bad one ends the program with exit
/// code 2.
pub fn read_sizes<const N: usize>(sizes: [Size; N]) -> [usize; N] {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() > N {
        eprintln!("too many arguments: {} given, at most {N} used", arguments.len());
        exit(2);
    }
    let mut arguments = arguments.into_iter();
    sizes.map(|Size { name, default, low, high }| match arguments.next() {
        None => default,
        Some(argument) => match argument.parse() {
            Ok(value) if (low..=high).contains(&value) => value,
            _ => {
                eprintln!("{name} must be a number from {low} to {high}, not '{argument}'");
                exit(2);
            }
        },
    })
}

/// The lock that the buggy program forgets.
pub fn lock_if_fixed<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    FIXED.then(|| lock.lock().unwrap())
}

/// A cell that all threads may use, on the word of whoever uses it.
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: none. That every access is ordered is for the subject to see to, and not to is its bug.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Shared<T> {
        Shared(UnsafeCell::new(value))
    }

    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}
