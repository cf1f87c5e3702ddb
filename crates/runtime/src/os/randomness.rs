//! Randomness, fixed by the plan: what a program draws is the same in every run of a plan.

use std::ffi::{CStr, c_int, c_long, c_uint, c_void};

use threadbare_trace::Random;

use crate::entry::intercept::intercept;
use crate::os::system;
use crate::schedule::carrier::Carrier;
use crate::schedule::state;

static RANDOM: Carrier<Random> = Carrier::new(Random(0));

/// Starts the sequence anew.
pub fn seed(seed: u64) {
    RANDOM.with(|random| *random = Random(seed ^ 0x7465_7374_6564));
}

/// The next number, which the running thread gets to know.
fn draw() -> u64 {
    let number = RANDOM.with(Random::next);
    state::learns(number);
    number
}

/// Where in the sequence the program is.
pub fn position() -> u64 {
    RANDOM.with(|random| random.0)
}

/// Fills a buffer of the program's.
///
/// # Safety
/// `len` bytes can be written there.
pub unsafe fn fill(buffer: *mut u8, len: usize) {
    for i in 0..len {
        // SAFETY: the caller's promise.
        unsafe { buffer.add(i).write(draw() as u8) };
    }
}

intercept! {
    fn getrandom(buffer: *mut c_void, len: usize, flags: c_uint) -> isize {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { fill(buffer.cast(), len) };
        len as isize
    }

    fn getentropy(buffer: *mut c_void, len: usize) -> c_int {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { fill(buffer.cast(), len) };
        0
    }

    fn arc4random() -> u32 {
        draw() as u32
    }

    fn arc4random_uniform(bound: u32) -> u32 {
        let drawn = RANDOM.with(|random| random.below(u64::from(bound.max(1))));
        state::learns(drawn);
        drawn as u32
    }

    fn arc4random_buf(buffer: *mut c_void, len: usize) {
        // SAFETY: the program promises libc a buffer of this length.
        unsafe { fill(buffer.cast(), len) };
    }

    /// `std::random_device`, which would otherwise ask the processor.
    fn _ZNSt13random_device9_M_getvalEv(this: *mut c_void) -> c_uint {
        draw() as c_uint
    }
}

/// A path that names the kernel's random numbers.
pub fn is_device(path: &CStr) -> bool {
    matches!(path.to_bytes(), b"/dev/urandom" | b"/dev/random")
}

/// A file of fixed random bytes; more than programs draw for a seed.
pub fn file() -> c_int {
    const BYTES: usize = 64 << 10;
    let bytes: Vec<u8> = (0..BYTES).map(|_| draw() as u8).collect();
    // SAFETY: the name ends in a zero.
    let file = unsafe { libc::memfd_create(c"random".as_ptr(), 0) };
    system::write(file, &bytes);
    // SAFETY: it only takes numbers.
    unsafe { libc::lseek(file, 0, libc::SEEK_SET) };
    file
}

/// Functions that draw from libc's own random numbers. The numbers follow from libc's seed. Which thread drew which
/// number is part of the program's state.
macro_rules! drawn {
    ($($name:ident: $number:ty;)+) => { intercept! { $(
        fn $name() -> $number, calling draw {
            // SAFETY: the function takes nothing and may be called at any time.
            let number = unsafe { draw() };
            state::learns(number as u64);
            number
        }
    )+ } };
}

drawn! { rand: c_int; random: c_long; lrand48: c_long; mrand48: c_long; }
