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

fn length(text: Text) -> usize {
    real!(strlen(text => Text) -> usize)
}

fn length_within(text: Text, max: usize) -> usize {
    real!(strnlen(text => Text, max => usize) -> usize)
}

/// `text` is read to its end, and at most `max` bytes of it.
fn reads(text: Text, max: usize, pc: u64) {
    if watched(pc) {
        let len = length_within(text, max).saturating_add(1).min(max);
        accesses::reads(text as u64, len as u64, pc);
    }
}

/// Both are read up to the first difference, and at most `max` bytes.
fn compares(one: Text, other: Text, max: usize, same: fn(u8, u8) -> bool, pc: u64) {
    if !watched(pc) {
        return;
    }
    // SAFETY: the function that was called reads the same bytes.
    let at = |text: Text, i: usize| unsafe { text.cast::<u8>().add(i).read() };
    let goes_on = |&i: &usize| at(one, i) != 0 && same(at(one, i), at(other, i));
    let len = (0..max).take_while(goes_on).count().saturating_add(1).min(max) as u64;
    accesses::reads(one as u64, len, pc);
    accesses::reads(other as u64, len, pc);
}

fn are_equal(one: u8, other: u8) -> bool {
    one == other
}

fn are_equal_but_for_case(one: u8, other: u8) -> bool {
    one.eq_ignore_ascii_case(&other)
}

/// `len` bytes of `from` go to `to`, followed by the end of a string.
fn copies(from: Text, to: TextOut, len: usize, pc: u64) {
    if watched(pc) {
        accesses::copies(from as u64, to as u64, len as u64 + 1, pc);
    }
}

intercept! {
    fn strlen(text: Text; pc) -> usize, when (true) {
        reads(text, usize::MAX, pc);
        length(text)
    }

    fn strnlen(text: Text, max: usize; pc) -> usize, when (true) {
        reads(text, max, pc);
        length_within(text, max)
    }

    fn strcmp(one: Text, other: Text; pc) -> c_int, when (true) {
        compares(one, other, usize::MAX, are_equal, pc);
        real!(strcmp(one => Text, other => Text) -> c_int)
    }

    fn strcasecmp(one: Text, other: Text; pc) -> c_int, when (true) {
        compares(one, other, usize::MAX, are_equal_but_for_case, pc);
        real!(strcasecmp(one => Text, other => Text) -> c_int)
    }

    fn strncmp(one: Text, other: Text, max: usize; pc) -> c_int, when (true) {
        compares(one, other, max, are_equal, pc);
        real!(strncmp(one => Text, other => Text, max => usize) -> c_int)
    }

    fn strncasecmp(one: Text, other: Text, max: usize; pc) -> c_int, when (true) {
        compares(one, other, max, are_equal_but_for_case, pc);
        real!(strncasecmp(one => Text, other => Text, max => usize) -> c_int)
    }

    /// The compiler makes this library call it too.
    fn memcmp | bcmp(one: *const c_void, other: *const c_void, len: usize; pc) -> c_int, when (true) {
        if watched(pc) && len > 0 {
            accesses::reads(one as u64, len as u64, pc);
            accesses::reads(other as u64, len as u64, pc);
        }
        real!(memcmp(one => *const c_void, other => *const c_void, len => usize) -> c_int)
    }

    fn memchr(bytes: *const c_void, wanted: c_int, len: usize; pc) -> *mut c_void, when (true) {
        let find = || real!(memchr(bytes => *const c_void, wanted => c_int, len => usize) -> *mut c_void);
        if watched(pc) && len > 0 {
            let found = find();
            let read = if found.is_null() { len } else { found as usize - bytes as usize + 1 };
            accesses::reads(bytes as u64, read as u64, pc);
        }
        find()
    }

    fn strchr(text: Text, wanted: c_int; pc) -> TextOut, when (true) {
        reads(text, usize::MAX, pc);
        real!(strchr(text => Text, wanted => c_int) -> TextOut)
    }

    fn strrchr(text: Text, wanted: c_int; pc) -> TextOut, when (true) {
        reads(text, usize::MAX, pc);
        real!(strrchr(text => Text, wanted => c_int) -> TextOut)
    }

    fn strstr(text: Text, wanted: Text; pc) -> TextOut, when (true) {
        reads(text, usize::MAX, pc);
        reads(wanted, usize::MAX, pc);
        real!(strstr(text => Text, wanted => Text) -> TextOut)
    }

    fn strdup(text: Text; pc) -> TextOut, when (true) {
        reads(text, usize::MAX, pc);
        real!(strdup(text => Text) -> TextOut)
    }

    fn strndup(text: Text, max: usize; pc) -> TextOut, when (true) {
        reads(text, max, pc);
        real!(strndup(text => Text, max => usize) -> TextOut)
    }

    fn strcpy(to: TextOut, from: Text; pc) -> TextOut, when (true) {
        copies(from, to, length(from), pc);
        real!(strcpy(to => TextOut, from => Text) -> TextOut)
    }

    fn stpcpy(to: TextOut, from: Text; pc) -> TextOut, when (true) {
        copies(from, to, length(from), pc);
        real!(stpcpy(to => TextOut, from => Text) -> TextOut)
    }

    /// Writes all of `to`, with zeroes after the end.
    fn strncpy(to: TextOut, from: Text, len: usize; pc) -> TextOut, when (true) {
        reads(from, len, pc);
        if watched(pc) && len > 0 {
            accesses::writes(to as u64, len as u64, pc);
        }
        real!(strncpy(to => TextOut, from => Text, len => usize) -> TextOut)
    }

    fn strcat(to: TextOut, from: Text; pc) -> TextOut, when (true) {
        reads(to, usize::MAX, pc);
        copies(from, to.wrapping_add(length(to)), length(from), pc);
        real!(strcat(to => TextOut, from => Text) -> TextOut)
    }

    fn strncat(to: TextOut, from: Text, max: usize; pc) -> TextOut, when (true) {
        reads(to, usize::MAX, pc);
        copies(from, to.wrapping_add(length(to)), length_within(from, max), pc);
        real!(strncat(to => TextOut, from => Text, max => usize) -> TextOut)
    }
}
