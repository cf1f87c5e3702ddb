//! Pipes, socket pairs, event descriptors and epoll sets: each run has its own.
//!
//! Descriptors are shared across a fork, and with them what is in a pipe or what an epoll set watches. So those
//! that the program made before its first thread are made anew in each run. (What was already in a socket then
//! stays behind; a pipe or socket with an end in another process is left as it is.)

use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::carrier::Carrier;
use crate::files::{open_descriptors, put_in_place};
use crate::io;
use crate::system;

enum Channel {
    Pipe { readers: Vec<c_int>, writers: Vec<c_int> },
    Sockets([c_int; 2]),
    Event { descriptor: c_int, count: u32, semaphore: bool },
    Epoll { descriptor: c_int, watched: Vec<Watched> },
}

/// A descriptor in an epoll set.
struct Watched {
    descriptor: c_int,
    event: libc::epoll_event,
}

static CHANNELS: Carrier<Vec<Channel>> = Carrier::new(Vec::new());

/// Notes what there is.
pub fn remember() {
    if io::has_forked() {
        return;
    }
    let descriptors = open_descriptors();
    let mut channels = pipes(&descriptors);
    channels.extend(io::socket_pairs().into_iter().map(Channel::Sockets));
    channels.extend(descriptors.iter().filter_map(|&descriptor| event(descriptor)));
    // Last, because they refer to the others.
    channels.extend(descriptors.iter().filter_map(|&descriptor| epoll(descriptor)));
    *CHANNELS.get() = channels;
}

/// The pipes of which both ends are here.
fn pipes(descriptors: &[c_int]) -> Vec<Channel> {
    let mut ends: BTreeMap<u64, (Vec<c_int>, Vec<c_int>)> = BTreeMap::new();
    for &descriptor in descriptors {
        // SAFETY: plain system calls into a place of our own.
        let (status, flags) = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            libc::fstat(descriptor, &mut status);
            (status, libc::fcntl(descriptor, libc::F_GETFL))
        };
        if status.st_mode & libc::S_IFMT == libc::S_IFIFO {
            let (readers, writers) = ends.entry(status.st_ino).or_default();
            let end = if flags & libc::O_ACCMODE == libc::O_RDONLY { readers } else { writers };
            end.push(descriptor);
        }
    }
    let whole = ends.into_values().filter(|(readers, writers)| !readers.is_empty() && !writers.is_empty());
    whole.map(|(readers, writers)| Channel::Pipe { readers, writers }).collect()
}

/// What the kernel says of a descriptor that is of the `kind`.
fn information(descriptor: c_int, kind: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()?;
    let is_kind = link.to_str() == Some(kind);
    is_kind.then(|| std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok())?
}

fn event(descriptor: c_int) -> Option<Channel> {
    let text = information(descriptor, "anon_inode:[eventfd]")?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let count = u32::from_str_radix(field("eventfd-count:")?, 16).ok()?;
    Some(Channel::Event { descriptor, count, semaphore: field("eventfd-semaphore:") == Some("1") })
}

fn epoll(descriptor: c_int) -> Option<Channel> {
    let text = information(descriptor, "anon_inode:[eventpoll]")?;
    let watched = text.lines().filter_map(watched).collect();
    Some(Channel::Epoll { descriptor, watched })
}

/// `tfd: 4 events: 19 data: 4 …`, the numbers but the first hexadecimal.
fn watched(line: &str) -> Option<Watched> {
    let mut words = line.strip_prefix("tfd:")?.split_whitespace();
    let descriptor = words.next()?.parse().ok()?;
    let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
    let data = u64::from_str_radix(words.nth(1)?, 16).ok()?;
    Some(Watched { descriptor, event: libc::epoll_event { events, u64: data } })
}

/// Gives this run channels of its own. One that cannot be made anew stays shared.
pub fn separate() {
    for channel in CHANNELS.get().iter_mut() {
        match channel {
            Channel::Pipe { readers, writers } => separate_pipe(readers, writers),
            Channel::Sockets(ends) => separate_sockets(*ends),
            Channel::Event { descriptor, count, semaphore } => {
                let flags = if *semaphore { libc::EFD_SEMAPHORE } else { 0 };
                put_in_place(make(libc::SYS_eventfd2, [u64::from(*count), flags as u64, 0]), &[*descriptor]);
            }
            Channel::Epoll { descriptor, watched } => separate_epoll(*descriptor, watched),
        }
    }
}

/// Makes a descriptor by the bare system call: the program's own count is kept of those that it makes itself.
fn make(number: i64, [first, second, third]: [u64; 3]) -> c_int {
    system::call(number, [first, second, third, 0, 0, 0]) as c_int
}

fn separate_pipe(readers: &[c_int], writers: &[c_int]) {
    let mut ends: [c_int; 2] = [0; 2];
    if make(libc::SYS_pipe2, [ends.as_mut_ptr() as u64, 0, 0]) == 0 {
        // SAFETY: a plain system call. The contents are copied without being taken.
        unsafe { libc::tee(readers[0], ends[1], 1 << 20, libc::SPLICE_F_NONBLOCK) };
        put_in_place(ends[0], readers);
        put_in_place(ends[1], writers);
    }
}

fn separate_sockets(ends: [c_int; 2]) {
    let option = |name: c_int| {
        let (mut value, mut len): (c_int, u32) = (0, size_of::<c_int>() as u32);
        // SAFETY: a plain system call into places of our own.
        unsafe {
            libc::getsockopt(ends[0], libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut len);
        }
        value
    };
    let mut made: [c_int; 2] = [0; 2];
    let (domain, kind) = (option(libc::SO_DOMAIN) as u64, option(libc::SO_TYPE) as u64);
    let arguments = [domain, kind, 0, made.as_mut_ptr() as u64, 0, 0];
    if system::call(libc::SYS_socketpair, arguments) == 0 {
        put_in_place(made[0], &ends[..1]);
        put_in_place(made[1], &ends[1..]);
    }
}

fn separate_epoll(descriptor: c_int, watched: &mut [Watched]) {
    let set = make(libc::SYS_epoll_create1, [0; 3]);
    for Watched { descriptor, event } in watched {
        // SAFETY: a plain system call on a descriptor of our own.
        unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, *descriptor, event) };
    }
    put_in_place(set, &[descriptor]);
}
