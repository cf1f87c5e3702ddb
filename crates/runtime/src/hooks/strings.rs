//! Functions of libc's that read and write strings for the program: accesses like any other.
//!
//! How much is accessed depends on what is there, so it is looked at twice: before the access is announced, to
//! know its extent, and then, when it is this thread's turn, by the function itself.

use std::ffi::{c_char, c_int, c_void};

use crate::entry::intercept::intercept;
use crate::entry::real::real;
use crate::hooks::accesses;
use crate::hooks::copies::watched;

intercept! {
    strlen/1 => strlen_;
    strnlen/2 => strnlen_;
    strcmp/2 => strcmp_;
    strcasecmp/2 => strcasecmp_;
    strncmp/3 => strncmp_;
    strncasecmp/3 => strncasecmp_;
    memcmp/3 => memcmp_;
    bcmp/3 => memcmp_;
    memchr/3 => memchr_;
    strchr/2 => strchr_;
    strrchr/2 => strrchr_;
    strstr/2 => strstr_;
    strdup/1 => strdup_;
    strndup/2 => strndup_;
    strcpy/2 => strcpy_;
    stpcpy/2 => stpcpy_;
    strncpy/3 => strncpy_;
    strcat/2 => strcat_;
    strncat/3 => strncat_;
}

type Text = *const c_char;
type TextOut = *mut c_char;

fn length(text: Text) -> usize {
    real!(strlen(text => Text) -> usize)
}

fn length_within(text: Text, most: usize) -> usize {
    real!(strnlen(text => Text, most => usize) -> usize)
}

/// `text` is read to its end, or for `most` bytes.
fn reads(text: Text, most: usize, pc: u64) {
    if watched(pc) {
        let len = length_within(text, most).saturating_add(1).min(most);
        accesses::reads(text as u64, len as u64, pc);
    }
}

/// Both are read as far as they are equal and one more, at most `most` bytes.
fn compares(one: Text, other: Text, most: usize, same: fn(u8, u8) -> bool, pc: u64) {
    if !watched(pc) {
        return;
    }
    // SAFETY: the function that was called reads the same bytes.
    let at = |text: Text, i: usize| unsafe { text.cast::<u8>().add(i).read() };
    let goes_on = |&i: &usize| at(one, i) != 0 && same(at(one, i), at(other, i));
    let len = (0..most).take_while(goes_on).count().saturating_add(1).min(most) as u64;
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

extern "C" fn strlen_(text: Text, pc: u64) -> usize {
    reads(text, usize::MAX, pc);
    length(text)
}

extern "C" fn strnlen_(text: Text, most: usize, pc: u64) -> usize {
    reads(text, most, pc);
    length_within(text, most)
}

extern "C" fn strcmp_(one: Text, other: Text, pc: u64) -> c_int {
    compares(one, other, usize::MAX, are_equal, pc);
    real!(strcmp(one => Text, other => Text) -> c_int)
}

extern "C" fn strcasecmp_(one: Text, other: Text, pc: u64) -> c_int {
    compares(one, other, usize::MAX, are_equal_but_for_case, pc);
    real!(strcasecmp(one => Text, other => Text) -> c_int)
}

extern "C" fn strncmp_(one: Text, other: Text, most: usize, pc: u64) -> c_int {
    compares(one, other, most, are_equal, pc);
    real!(strncmp(one => Text, other => Text, most => usize) -> c_int)
}

extern "C" fn strncasecmp_(one: Text, other: Text, most: usize, pc: u64) -> c_int {
    compares(one, other, most, are_equal_but_for_case, pc);
    real!(strncasecmp(one => Text, other => Text, most => usize) -> c_int)
}

/// This very library compares memory with it, too.
extern "C" fn memcmp_(one: *const c_void, other: *const c_void, len: usize, pc: u64) -> c_int {
    if watched(pc) && len > 0 {
        accesses::reads(one as u64, len as u64, pc);
        accesses::reads(other as u64, len as u64, pc);
    }
    real!(memcmp(one => *const c_void, other => *const c_void, len => usize) -> c_int)
}

extern "C" fn memchr_(bytes: *const c_void, wanted: c_int, len: usize, pc: u64) -> *mut c_void {
    let find = || real!(memchr(bytes => *const c_void, wanted => c_int, len => usize) -> *mut c_void);
    if watched(pc) && len > 0 {
        let found = find();
        let read = if found.is_null() { len } else { found as usize - bytes as usize + 1 };
        accesses::reads(bytes as u64, read as u64, pc);
    }
    find()
}

extern "C" fn strchr_(text: Text, wanted: c_int, pc: u64) -> TextOut {
    reads(text, usize::MAX, pc);
    real!(strchr(text => Text, wanted => c_int) -> TextOut)
}

extern "C" fn strrchr_(text: Text, wanted: c_int, pc: u64) -> TextOut {
    reads(text, usize::MAX, pc);
    real!(strrchr(text => Text, wanted => c_int) -> TextOut)
}

extern "C" fn strstr_(text: Text, wanted: Text, pc: u64) -> TextOut {
    reads(text, usize::MAX, pc);
    reads(wanted, usize::MAX, pc);
    real!(strstr(text => Text, wanted => Text) -> TextOut)
}

extern "C" fn strdup_(text: Text, pc: u64) -> TextOut {
    reads(text, usize::MAX, pc);
    real!(strdup(text => Text) -> TextOut)
}

extern "C" fn strndup_(text: Text, most: usize, pc: u64) -> TextOut {
    reads(text, most, pc);
    real!(strndup(text => Text, most => usize) -> TextOut)
}

extern "C" fn strcpy_(to: TextOut, from: Text, pc: u64) -> TextOut {
    copies(from, to, length(from), pc);
    real!(strcpy(to => TextOut, from => Text) -> TextOut)
}

extern "C" fn stpcpy_(to: TextOut, from: Text, pc: u64) -> TextOut {
    copies(from, to, length(from), pc);
    real!(stpcpy(to => TextOut, from => Text) -> TextOut)
}

/// Writes all of `to`, with zeroes after the end.
extern "C" fn strncpy_(to: TextOut, from: Text, len: usize, pc: u64) -> TextOut {
    reads(from, len, pc);
    if watched(pc) && len > 0 {
        accesses::writes(to as u64, len as u64, pc);
    }
    real!(strncpy(to => TextOut, from => Text, len => usize) -> TextOut)
}

extern "C" fn strcat_(to: TextOut, from: Text, pc: u64) -> TextOut {
    reads(to, usize::MAX, pc);
    copies(from, to.wrapping_add(length(to)), length(from), pc);
    real!(strcat(to => TextOut, from => Text) -> TextOut)
}

extern "C" fn strncat_(to: TextOut, from: Text, most: usize, pc: u64) -> TextOut {
    reads(to, usize::MAX, pc);
    copies(from, to.wrapping_add(length(to)), length_within(from, most), pc);
    real!(strncat(to => TextOut, from => Text, most => usize) -> TextOut)
}
