//! `real!`: libc's own functions, which the runtime's functions of the same names hide.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use crate::entry::imports;
use crate::entry::process::die;

/// The system's function of this name, which the runtime calls for itself; the process ends if there is none. Some
/// functions exist in two versions, and a look-up without a version may find the old one.
pub fn of_system(name: &CStr, version: Option<&CStr>) -> NonNull<c_void> {
    or_die(name, imports::find_in_system(name, version))
}

/// What the program's own call would have come to without this library: the system's function, unless a library of the
/// program's has one of this name.
pub fn next(name: &CStr, version: Option<&CStr>) -> NonNull<c_void> {
    or_die(name, imports::find_behind(name, version))
}

fn or_die(name: &CStr, address: Option<u64>) -> NonNull<c_void> {
    let missing = || die(&["threadbare: libc has no ", name.to_str().unwrap_or_default(), "\n"]);
    NonNull::new(address.unwrap_or(0) as *mut c_void).unwrap_or_else(missing)
}

/// A function's name for [`of_system`] and [`next`].
macro_rules! name {
    ($name:ident) => {
        const {
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        }
    };
}
pub(crate) use name;

/// The function of this name that [`of_system`] or [`next`] finds. It is looked up once.
macro_rules! found {
    ($find:ident, $name:ident, $version:expr) => {{
        use std::sync::atomic::{AtomicPtr, Ordering};
        static FOUND: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut found = FOUND.load(Ordering::Relaxed);
        if found.is_null() {
            found = $crate::entry::real::$find($crate::entry::real::name!($name), $version).as_ptr();
            FOUND.store(found, Ordering::Relaxed);
        }
        found
    }};
}
pub(crate) use found;

/// `real!(name(args) -> result)`: calls libc's own function of that name, which is `unsafe`. `real!(next: …)` passes a
/// call of the program's on.
///
/// Whoever writes it promises that libc's function has this signature, and that the arguments are those that the
/// program passed or are valid for the function.
macro_rules! real {
    (next: $($call:tt)+) => {
        $crate::entry::real::real!(@of next $($call)+)
    };
    (@of $find:ident $name:ident($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $find, $name, None, ($($arg => $ty),*) $(-> $ret)?)
    };
    (@of $find:ident $name:ident @ $version:literal ($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $find, $name, Some($version), ($($arg => $ty),*) $(-> $ret)?)
    };
    (@call $find:ident, $name:ident, $version:expr, ($($arg:expr => $ty:ty),*) $(-> $ret:ty)?) => {{
        type Function = unsafe extern "C" fn($($ty),*) $(-> $ret)?;
        let found = $crate::entry::real::found!($find, $name, $version);
        std::mem::transmute::<*mut std::ffi::c_void, Function>(found)($($arg),*)
    }};
    ($($call:tt)+) => {
        $crate::entry::real::real!(@of of_system $($call)+)
    };
}
pub(crate) use real;
