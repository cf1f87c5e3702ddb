//! `strlen`, `strcpy` and their like: they access memory for the program.
//!
//! How many bytes are accessed depends on the string. So the string is read twice: before the schedule point, to know
//! how many bytes the access has, and after it, by libc's function.

use std::ffi::{c_char, c_int, c_void};

use crate::entry::intercept::intercept;
use crate::entry::real::real;
use crate::hooks::accesses;
use crate::hooks::copies::watched;

type Text = *const c_char;
type TextOut = *mut c_char;

/// # Safety
/// `text` is a string.
unsafe fn length(text: Text) -> usize {
    // SAFETY: the caller promises a string.
    unsafe { real!(strlen(text => Text) -> usize) }
}

/// # Safety
/// `text` is a string, or has `max` bytes.
unsafe fn length_within(text: Text, max: usize) -> usize {
    // SAFETY: the caller promises a string, or so many bytes.
    unsafe { real!(strnlen(text => Text, max => usize) -> usize) }
}

/// `text` is read to its end, and at most `max` bytes of it.
///
/// # Safety
/// The program's call does so next.
unsafe fn reads(text: Text, max: usize, pc: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let len = length_within(text, max).saturating_add(1).min(max);
        accesses::reads(text as u64, len as u64, pc);
    }
}

/// Both are read up to the first difference, and at most `max` bytes.
///
/// # Safety
/// The program's call does so next.
unsafe fn compares(one: Text, other: Text, max: usize, same: fn(u8, u8) -> bool, pc: u64) {
    // SAFETY: the caller's promise.
    let at = |text: Text, i: usize| unsafe { text.cast::<u8>().add(i).read() };
    let goes_on = |&i: &usize| at(one, i) != 0 && same(at(one, i), at(other, i));
    let len = (0..max).take_while(goes_on).count().saturating_add(1).min(max) as u64;
    // SAFETY: the caller's promise.
    unsafe {
        accesses::reads(one as u64, len, pc);
        accesses::reads(other as u64, len, pc);
    }
}

fn are_equal(one: u8, other: u8) -> bool {
    one == other
}

fn are_equal_but_for_case(one: u8, other: u8) -> bool {
    one.eq_ignore_ascii_case(&other)
}

/// `len` bytes of `from` go to `to`, followed by the end of a string.
///
/// # Safety
/// The program's call does so next.
unsafe fn copies(from: Text, to: TextOut, len: usize, pc: u64) {
    // SAFETY: the caller's promise.
    unsafe { accesses::copies(from as u64, to as u64, len as u64 + 1, pc) };
}

/// `accesses! { name(arguments; pc) -> result: before; }`: entries for functions that libc does, after `before` has
/// told of the accesses that they make.
macro_rules! accesses {
    ($($name:ident $(| $alias:ident)* ($($arg:ident: $ty:ty),*; $pc:ident) -> $ret:ty: $before:expr;)+) => {
        intercept! { $(
            fn $name $(| $alias)* ($($arg: $ty),*; $pc) -> $ret, when (watched($pc)), calling call {
                // SAFETY: libc's function makes these accesses next, with the program's arguments.
                unsafe { $before };
                // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
                unsafe { call($($arg),*) }
            }
        )+ }
    };
}

accesses! {
    strlen(text: Text; pc) -> usize: reads(text, usize::MAX, pc);
    strnlen(text: Text, max: usize; pc) -> usize: reads(text, max, pc);
    strcmp(one: Text, other: Text; pc) -> c_int: compares(one, other, usize::MAX, are_equal, pc);
    strcasecmp(one: Text, other: Text; pc) -> c_int: compares(one, other, usize::MAX, are_equal_but_for_case, pc);
    strncmp(one: Text, other: Text, max: usize; pc) -> c_int: compares(one, other, max, are_equal, pc);
    strncasecmp(one: Text, other: Text, max: usize; pc) -> c_int: compares(one, other, max, are_equal_but_for_case, pc);
    strchr(text: Text, wanted: c_int; pc) -> TextOut: reads(text, usize::MAX, pc);
    strrchr(text: Text, wanted: c_int; pc) -> TextOut: reads(text, usize::MAX, pc);
    strstr(text: Text, wanted: Text; pc) -> TextOut: {
        reads(text, usize::MAX, pc);
        reads(wanted, usize::MAX, pc);
    };
    strdup(text: Text; pc) -> TextOut: reads(text, usize::MAX, pc);
    strndup(text: Text, max: usize; pc) -> TextOut: reads(text, max, pc);
    strcpy(to: TextOut, from: Text; pc) -> TextOut: copies(from, to, length(from), pc);
    stpcpy(to: TextOut, from: Text; pc) -> TextOut: copies(from, to, length(from), pc);
    strcat(to: TextOut, from: Text; pc) -> TextOut: {
        reads(to, usize::MAX, pc);
        copies(from, to.wrapping_add(length(to)), length(from), pc);
    };
    strncat(to: TextOut, from: Text, max: usize; pc) -> TextOut: {
        reads(to, usize::MAX, pc);
        copies(from, to.wrapping_add(length(to)), length_within(from, max), pc);
    };
}

intercept! {
    /// Writes all of `to`, with zeroes after the end.
    fn strncpy(to: TextOut, from: Text, len: usize; pc) -> TextOut, when (watched(pc)), calling copy {
        // SAFETY: libc's function makes these accesses next, with the program's arguments.
        unsafe {
            reads(from, len, pc);
            if len > 0 {
                accesses::writes(to as u64, len as u64, pc);
            }
        }
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { copy(to, from, len) }
    }

    /// The compiler makes this library call it too.
    fn memcmp | bcmp(
        one: *const c_void, other: *const c_void, len: usize; pc
    ) -> c_int, when (watched(pc) && len > 0), calling compare {
        // SAFETY: libc's function makes these accesses next, with the program's arguments.
        unsafe {
            accesses::reads(one as u64, len as u64, pc);
            accesses::reads(other as u64, len as u64, pc);
        }
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { compare(one, other, len) }
    }

    fn memchr(
        bytes: *const c_void, wanted: c_int, len: usize; pc
    ) -> *mut c_void, when (watched(pc) && len > 0), calling find {
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        let found = unsafe { find(bytes, wanted, len) };
        let read = if found.is_null() { len } else { found as usize - bytes as usize + 1 };
        // SAFETY: libc's function reads the same bytes next.
        unsafe { accesses::reads(bytes as u64, read as u64, pc) };
        // SAFETY: the program promises libc that its arguments are valid; they are passed on as they are.
        unsafe { find(bytes, wanted, len) }
    }
}
