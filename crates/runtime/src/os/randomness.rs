//! Randomness, fixed by the plan: what a program draws is the same in every run of a plan.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};

use crate::active;
use crate::entry::real::real;
use crate::os::{files, leftovers, processors};
use crate::schedule::carrier::Carrier;
use crate::schedule::state;
use threadbare_trace::Random;

static RANDOM: Carrier<Random> = Carrier::new(Random(0));

/// Starts the sequence anew.
pub fn seed(seed: u64) {
    *RANDOM.get() = Random(seed ^ 0x7465_7374_6564);
}

/// The next number, which the running thread gets to know.
fn draw() -> u64 {
    let number = RANDOM.get().next();
    state::learns(number);
    number
}

/// Where in the sequence the program is.
pub fn position() -> u64 {
    RANDOM.get().0
}

/// Fills `len` bytes.
pub fn fill(buffer: *mut u8, len: usize) {
    for i in 0..len {
        // SAFETY: the program's buffer.
        unsafe { buffer.add(i).write(draw() as u8) };
    }
}

#[unsafe(no_mangle)]
extern "C" fn getrandom(buffer: *mut c_void, len: usize, flags: c_uint) -> isize {
    if !active() {
        return real!(getrandom(buffer => *mut c_void, len => usize, flags => c_uint) -> isize);
    }
    fill(buffer.cast(), len);
    len as isize
}

#[unsafe(no_mangle)]
extern "C" fn getentropy(buffer: *mut c_void, len: usize) -> c_int {
    if !active() {
        return real!(getentropy(buffer => *mut c_void, len => usize) -> c_int);
    }
    fill(buffer.cast(), len);
    0
}

#[unsafe(no_mangle)]
extern "C" fn arc4random() -> u32 {
    if !active() {
        return real!(arc4random() -> u32);
    }
    draw() as u32
}

#[unsafe(no_mangle)]
extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    if !active() {
        return real!(arc4random_uniform(bound => u32) -> u32);
    }
    let drawn = RANDOM.get().below(u64::from(bound.max(1)));
    state::learns(drawn);
    drawn as u32
}

#[unsafe(no_mangle)]
extern "C" fn arc4random_buf(buffer: *mut c_void, len: usize) {
    if !active() {
        return real!(arc4random_buf(buffer => *mut c_void, len => usize));
    }
    fill(buffer.cast(), len);
}

/// `std::random_device`, which would otherwise ask the processor.
#[unsafe(no_mangle)]
extern "C" fn _ZNSt13random_device9_M_getvalEv(this: *mut c_void) -> c_uint {
    if !active() {
        return real!(_ZNSt13random_device9_M_getvalEv(this => *mut c_void) -> c_uint);
    }
    draw() as c_uint
}

/// A path that names the kernel's random numbers.
fn is_random_device(path: *const c_char) -> bool {
    // SAFETY: the program's string; one that cannot be read would fail in `open` too.
    let path = if path.is_null() { return false } else { unsafe { CStr::from_ptr(path) } };
    active() && matches!(path.to_bytes(), b"/dev/urandom" | b"/dev/random")
}

/// A file of fixed random bytes; more than programs draw for a seed.
fn random_file() -> c_int {
    const BYTES: usize = 64 << 10;
    let mut bytes = vec![0u8; BYTES];
    fill(bytes.as_mut_ptr(), BYTES);
    // SAFETY: plain system calls on a descriptor just made.
    unsafe {
        let file = libc::memfd_create(c"random".as_ptr(), 0);
        libc::write(file, bytes.as_ptr().cast(), BYTES);
        libc::lseek(file, 0, libc::SEEK_SET);
        file
    }
}

macro_rules! open {
    ($($name:ident)+) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
            if is_random_device(path) {
                return random_file();
            }
            if processors::is_limit(path) {
                return processors::no_limit();
            }
            files::opens(flags);
            let call = || real!($name(path => *const c_char, flags => c_int, mode => c_uint) -> c_int);
            if flags & libc::O_CREAT == 0 {
                return call();
            }
            leftovers::creating(path, call, |file| file >= 0)
        }
    )+ };
}
open! { open open64 }

macro_rules! fopen {
    ($($name:ident)+) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
            if is_random_device(path) {
                // SAFETY: a descriptor of our own.
                return unsafe { libc::fdopen(random_file(), c"r".as_ptr()) };
            }
            if processors::is_limit(path) {
                processors::no_limit();
                return std::ptr::null_mut();
            }
            let call = || real!($name(path => *const c_char, mode => *const c_char) -> *mut libc::FILE);
            if !files::opens_as(mode) {
                return call();
            }
            leftovers::creating(path, call, |file| !file.is_null())
        }
    )+ };
}
fopen! { fopen fopen64 }

/// libc's own random numbers follow from its seed, whoever draws them; who drew which is worth knowing.
macro_rules! drawn {
    ($($name:ident: $number:ty;)+) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> $number {
            let number = real!($name() -> $number);
            if active() {
                state::learns(number as u64);
            }
            number
        }
    )+ };
}
drawn! { rand: c_int; random: c_long; lrand48: c_long; mrand48: c_long; }

/// For `syscall(SYS_getrandom, …)`.
pub fn system_call(buffer: u64, len: u64) -> c_long {
    fill(buffer as *mut u8, len as usize);
    len as c_long
}
