//! Pipes, socket pairs, event, timer and epoll descriptors from before the first thread: each run has its own.
//!
//! A fork shares descriptors and what lies in them, so one run would read what another has written. A channel with both
//! ends in this process is therefore made anew in each run, under the same numbers, with the contents that it had at
//! the first thread. A channel whose other end another process may hold stays as it is.

use std::cell::Cell;
use std::ffi::{c_int, c_long};

use crate::active;
use crate::os::io::{self, Nature};
use crate::os::{descriptors, system};
use crate::schedule::carrier::Carrier;
use crate::schedule::scheduler;

/// What it was made as.
#[derive(Clone, Copy)]
pub enum Kind {
    Pipe,
    Pair {
        domain: c_int,
        kind: c_int,
        protocol: c_int,
    },
    Event {
        flags: c_int,
    },
    /// One of those that `timers` counts up.
    Timer {
        flags: c_int,
    },
}

/// Something that the program made, by its descriptors and their inodes at the time.
struct Made {
    kind: Kind,
    ends: Vec<(c_int, u64)>,
}

static MADE: Carrier<Vec<Made>> = Carrier::new(Vec::new());

/// A channel as it stood at the first thread.
struct Channel {
    kind: Kind,
    ends: Vec<End>,
}

struct End {
    /// Numbers under which the program has it, with whether they are closed on exec.
    descriptors: Vec<(c_int, bool)>,
    flags: c_long,
    /// What can be read from it, in the pieces in which it was sent.
    unread: Vec<Vec<u8>>,
}

/// An epoll descriptor and what it watches: descriptor, events, data.
struct Watcher {
    descriptor: c_int,
    close_on_exec: bool,
    watched: Vec<(c_int, u32, u64)>,
}

static CHANNELS: Carrier<Vec<Channel>> = Carrier::new(Vec::new());
static WATCHERS: Carrier<Vec<Watcher>> = Carrier::new(Vec::new());
/// Descriptors that there were before the first thread, with their inodes.
static BEFORE: Carrier<Vec<(c_int, u64)>> = Carrier::new(Vec::new());

fn inode(descriptor: c_int) -> u64 {
    system::status(descriptor).map_or(0, |status| status.st_ino)
}

/// The program has made a channel.
pub fn made(kind: Kind, ends: &[c_int]) {
    if active() && !scheduler::is_running() {
        let ends = ends.iter().map(|&end| (end, inode(end))).collect();
        MADE.with(|made| made.push(Made { kind, ends }));
    }
}

/// These descriptors are about to be closed.
pub fn forget(closed: &impl Fn(c_int) -> bool) {
    MADE.with(|made| made.retain(|made| !made.ends.iter().any(|&(end, _)| closed(end))));
}

/// Remembers the channels that there are before the first thread, and what lies in them.
pub fn remember() {
    let all = descriptors::all();
    let before = all.iter().map(|&descriptor| (descriptor, inode(descriptor))).collect();
    BEFORE.with(|known| *known = before);
    let watchers = all.iter().filter_map(|&descriptor| watcher(descriptor)).collect();
    WATCHERS.with(|known| *known = watchers);
    let mut made = MADE.with(std::mem::take);
    // A child from before the first thread may hold any end; timers have none.
    made.retain(|made| !io::has_forked() || matches!(made.kind, Kind::Timer { .. }));
    let still_there = |made: &Made| made.ends.iter().all(|&(end, was)| inode(end) == was);
    let channels = made.iter().filter(|made| still_there(made)).map(|made| channel(made, &all)).collect();
    CHANNELS.with(|known| *known = channels);
}

/// The run has made a channel, used or not, that a copy of this process would share.
pub fn are_new() -> bool {
    let was_there = |descriptor: c_int| {
        let known = (descriptor, inode(descriptor));
        BEFORE.with(|before| before.contains(&known))
    };
    let is_new = |descriptor: c_int| match io::nature(descriptor) {
        Nature::Plain => false,
        Nature::Pipe | Nature::Socket => !was_there(descriptor),
        // All of these have the same inode.
        Nature::Event => true,
    };
    descriptors::all().into_iter().any(is_new)
}

fn channel(made: &Made, all: &[c_int]) -> Channel {
    let end = |(index, &(descriptor, _)): (usize, &(c_int, u64))| End {
        descriptors: same_file(descriptor, all),
        flags: system::fcntl(descriptor, libc::F_GETFL, 0),
        unread: if matches!((made.kind, index), (Kind::Pipe, 1)) { Vec::new() } else { drain(descriptor) },
    };
    Channel { kind: made.kind, ends: made.ends.iter().enumerate().map(end).collect() }
}

/// The descriptor, and others that `dup` has made of it.
fn same_file(descriptor: c_int, all: &[c_int]) -> Vec<(c_int, bool)> {
    let same = |&other: &c_int| descriptors::are_same(descriptor, other);
    all.iter().copied().filter(same).map(|descriptor| (descriptor, closes_on_exec(descriptor))).collect()
}

fn closes_on_exec(descriptor: c_int) -> bool {
    system::fcntl(descriptor, libc::F_GETFD, 0) & c_long::from(libc::FD_CLOEXEC) != 0
}

/// Reads all there is to read without waiting, piece by piece.
fn drain(descriptor: c_int) -> Vec<Vec<u8>> {
    /// The longest message that a socket takes by default, and more than a pipe holds at a time.
    const PIECE: usize = 256 << 10;
    let mut pieces = Vec::new();
    loop {
        let entry = Cell::new(libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 });
        if !io::is_ready(std::slice::from_ref(&entry)) || entry.get().revents & libc::POLLIN == 0 {
            return pieces;
        }
        let mut piece = vec![0u8; PIECE];
        match system::read(descriptor, &mut piece) {
            ..=0 => return pieces,
            count => piece.truncate(count as usize),
        }
        pieces.push(piece);
    }
}

/// What an epoll descriptor watches, as the kernel tells.
fn watcher(descriptor: c_int) -> Option<Watcher> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    if link.to_str() != Some("anon_inode:[eventpoll]") {
        return None;
    }
    let text = system::read_file(&format!("/proc/self/fdinfo/{descriptor}"));
    Some(Watcher { descriptor, close_on_exec: closes_on_exec(descriptor), watched: watched_in(&text) })
}

/// What the kernel's text on an epoll descriptor names: descriptor, events, data.
fn watched_in(text: &str) -> Vec<(c_int, u32, u64)> {
    let entry = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let descriptor = words.next()?.parse().ok()?;
        let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
        let data = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        Some((descriptor, events, data))
    };
    text.lines().filter_map(entry).collect()
}

/// The descriptors that an epoll descriptor watches; `None` for any other.
pub fn watched(descriptor: c_int) -> Option<Vec<c_int>> {
    let watcher = watcher(descriptor)?;
    Some(watcher.watched.into_iter().map(|(descriptor, ..)| descriptor).collect())
}

/// Gives this run channels of its own.
pub fn separate() {
    CHANNELS.with(|channels| channels.iter().for_each(renew));
    WATCHERS.with(|watchers| watchers.iter().for_each(renew_watcher));
}

fn renew(channel: &Channel) {
    let Some(new) = make(channel.kind) else { return };
    if let (Kind::Pipe, Some((first, _))) = (channel.kind, channel.ends[0].descriptors.first()) {
        system::fcntl(new[1], libc::F_SETPIPE_SZ, system::fcntl(*first, libc::F_GETPIPE_SZ, 0));
    }
    for (index, end) in channel.ends.iter().enumerate() {
        // What comes out at one end was put in at the other; event and timer descriptors have only one.
        let source = if channel.ends.len() == 1 { new[0] } else { new[1 - index] };
        for piece in &end.unread {
            system::write(source, piece);
        }
    }
    for (end, &new) in channel.ends.iter().zip(&new) {
        system::fcntl(new, libc::F_SETFL, end.flags);
        replace(new, &end.descriptors);
    }
}

/// Makes such a channel, with one end or two.
fn make(kind: Kind) -> Option<[c_int; 2]> {
    let mut new: [c_int; 2] = [-1; 2];
    let place = new.as_mut_ptr() as u64;
    let made = match kind {
        // SAFETY: the kernel writes two descriptors to the place, which is `new`.
        Kind::Pipe => unsafe { system::call(libc::SYS_pipe2, [place, 0, 0, 0, 0, 0]) },
        Kind::Pair { domain, kind, protocol } => {
            let arguments = [domain as u64, kind as u64, protocol as u64, place, 0, 0];
            // SAFETY: the kernel writes two descriptors to the place, which is `new`.
            unsafe { system::call(libc::SYS_socketpair, arguments) }
        }
        Kind::Event { flags } | Kind::Timer { flags } => {
            new[0] = system::eventfd(flags);
            c_long::from(new[0])
        }
    };
    (made >= 0).then_some(new)
}

fn renew_watcher(watcher: &Watcher) {
    let new = system::epoll_create();
    if new < 0 {
        return;
    }
    for &(descriptor, events, data) in &watcher.watched {
        let event = libc::epoll_event { events, u64: data };
        let (add, place) = (libc::EPOLL_CTL_ADD as u64, (&raw const event) as u64);
        // SAFETY: the kernel reads the event, a variable of this loop's.
        unsafe { system::call(libc::SYS_epoll_ctl, [new as u64, add, descriptor as u64, place, 0, 0]) };
    }
    replace(new, &[(watcher.descriptor, watcher.close_on_exec)]);
}

/// Puts `new` in the place of these descriptors.
fn replace(new: c_int, descriptors: &[(c_int, bool)]) {
    for &(descriptor, close_on_exec) in descriptors {
        let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
        system::dup3(new, descriptor, flags);
    }
    system::close(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6 writes it: numbers are decimal for descriptors, and hexadecimal for events and data.
    #[test]
    fn the_kernels_text_on_an_epoll_descriptor() {
        let text = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n\
                    tfd:       12 events:       19 data:     7ffd00000010  pos:0 ino:61af sdev:7\n\
                    tfd:        5 events: 80000001 data:                5  pos:0 ino:61af sdev:7\n";
        assert_eq!(watched_in(text), [(12, 0x19, 0x7ffd_0000_0010), (5, 0x8000_0001, 5)]);
        assert_eq!(watched_in("tfd: x events: 1 data: 2\ntfd: 1\n"), []);
    }
}
