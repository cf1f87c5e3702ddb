//! `real!`: libc's own functions, which the runtime's functions of the same names hide.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

use crate::entry::process::die;

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Finds libc's function of this name; the process ends if there is none. Some functions exist in two versions, and a
/// look-up without a version may find the old one.
pub fn find(name: &CStr, version: Option<&CStr>) -> NonNull<c_void> {
    // SAFETY: the loader reads both strings, which end in NUL.
    let found = unsafe {
        match version {
            Some(version) => dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()),
            None => libc::dlsym(libc::RTLD_NEXT, name.as_ptr()),
        }
    };
    let missing = || die(&["threadbare: libc has no ", name.to_str().unwrap_or_default(), "\n"]);
    NonNull::new(found).unwrap_or_else(missing)
}

/// A function's name for [`find`].
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

/// libc's function of this name, which is looked up once.
macro_rules! found {
    ($name:ident, $version:expr) => {{
        use std::sync::atomic::{AtomicPtr, Ordering};
        static FOUND: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut found = FOUND.load(Ordering::Relaxed);
        if found.is_null() {
            found = $crate::entry::real::find($crate::entry::real::name!($name), $version).as_ptr();
            FOUND.store(found, Ordering::Relaxed);
        }
        found
    }};
}
pub(crate) use found;

/// `real!(name(args) -> result)`: calls libc's own function of that name, which is `unsafe`.
///
/// Whoever writes it promises that libc's function has this signature, and that the arguments are those that the
/// program passed or are valid for the function.
macro_rules! real {
    ($name:ident($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $name, None, ($($arg => $ty),*) $(-> $ret)?)
    };
    ($name:ident @ $version:literal ($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $name, Some($version), ($($arg => $ty),*) $(-> $ret)?)
    };
    (@call $name:ident, $version:expr, ($($arg:expr => $ty:ty),*) $(-> $ret:ty)?) => {{
        type Function = unsafe extern "C" fn($($ty),*) $(-> $ret)?;
        let found = $crate::entry::real::found!($name, $version);
        std::mem::transmute::<*mut std::ffi::c_void, Function>(found)($($arg),*)
    }};
}
pub(crate) use real;
