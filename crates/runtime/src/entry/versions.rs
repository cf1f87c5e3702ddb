//! Functions of which glibc has an old version besides the current one.
//!
//! ThreadSanitizer's library has these functions without a version, so a program that gcc linked against it asks for
//! them by name alone. For a name alone the dynamic linker finds glibc's oldest version: a `realpath` that allocates
//! nothing, a `pthread_cond_init` that knows no clocks. The functions here call the current version. Functions that the
//! runtime models as well are in their models' files.

use crate::entry::intercept::intercept;

/// Exports each name, with arguments as they come in registers.
macro_rules! current_version {
    ($($name:ident @ $version:literal ($($arg:ident),*);)+) => { intercept! { $(
        fn $name @ $version ($($arg: usize),*) -> usize, when (true), calling current {
            // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
            unsafe { current($($arg),*) }
        }
    )+ } };
}

current_version! {
    fmemopen @ c"GLIBC_2.22" (buffer, size, mode);
    glob @ c"GLIBC_2.27" (pattern, flags, on_error, result);
    glob64 @ c"GLIBC_2.27" (pattern, flags, on_error, result);
    pthread_attr_getaffinity_np @ c"GLIBC_2.3.4" (attributes, size, set);
    pthread_cond_init @ c"GLIBC_2.3.2" (condition, attributes);
    realpath @ c"GLIBC_2.3" (path, resolved);
    regexec @ c"GLIBC_2.3.4" (expression, text, count, matches, flags);
}
