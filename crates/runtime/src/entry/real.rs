//! `real!`: libc's own functions, which the runtime's functions of the same names hide.

use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, symbol: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Finds libc's function of this name. Some functions exist in two versions, and a look-up without a version may find
/// the old one.
pub fn find(name: &CStr, version: Option<&CStr>) -> *mut c_void {
    // SAFETY: both strings end in NUL.
    unsafe {
        match version {
            Some(version) => dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()),
            None => libc::dlsym(libc::RTLD_NEXT, name.as_ptr()),
        }
    }
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

/// `real!(name(args) -> result)`: calls libc's own function of that name.
///
/// The arguments are those that the program passed, or are valid for the function: this is where the promises that a
/// program makes to libc are passed on.
macro_rules! real {
    ($name:ident($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $name, None, ($($arg => $ty),*) $(-> $ret)?)
    };
    ($name:ident @ $version:literal ($($arg:expr => $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $crate::entry::real::real!(@call $name, Some($version), ($($arg => $ty),*) $(-> $ret)?)
    };
    (@call $name:ident, $version:expr, ($($arg:expr => $ty:ty),*) $(-> $ret:ty)?) => {{
        use std::sync::atomic::{AtomicPtr, Ordering};
        static FOUND: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
        let mut found = FOUND.load(Ordering::Relaxed);
        if found.is_null() {
            found = $crate::entry::real::find($crate::entry::real::name!($name), $version);
            FOUND.store(found, Ordering::Relaxed);
        }
        // SAFETY: libc's function of this name has this signature.
        #[allow(unused_unsafe)]
        unsafe {
            let function: unsafe extern "C" fn($($ty),*) $(-> $ret)? = std::mem::transmute(found);
            function($($arg),*)
        }
    }};
}
pub(crate) use real;
