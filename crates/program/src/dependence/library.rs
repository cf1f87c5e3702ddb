//! What functions do whose code is not looked at: the hooks of ThreadSanitizer, and the C library.
//!
//! A function that is not known here counts as one that may do anything, which is said in the result.

use super::location::{ARGUMENTS, Location, R8, RAX, RCX, RDI, RDX, RSI};
use super::summary::{Source, Sources, Summary, Way, Write};
use super::{Gap, Load};

/// How a call of a library function is described. `None` for a function that is not known.
pub(super) fn summary(name: &str, site: Load) -> Option<Summary> {
    if let Some(operation) = atomic(name) {
        return Some(of_atomic(&operation, site));
    }
    if is_announcement(name) {
        return Some(Summary::nothing());
    }
    let name = name.strip_prefix("__tsan_").or_else(|| name.strip_prefix("__interceptor_")).unwrap_or(name);
    Some(match name {
        "memcpy" | "memmove" | "__memcpy_chk" | "__memmove_chk" => of_copy(site),
        "memset" | "__memset_chk" | "bzero" => of_fill(),
        "memcmp" | "bcmp" | "strncmp" | "memchr" => of_comparison(site, Some(RDX)),
        "strcmp" | "strlen" | "strchr" | "strnlen" => of_comparison(site, None),
        "pthread_create" => of_thread_start(),
        "pthread_join" | "posix_memalign" => writes_pointer(if name == "pthread_join" { RSI } else { RDI }),
        _ if name.contains("try") && is_lock_function(name) || name.contains("timed") => of_attempt(site),
        _ if is_lock_function(name) || name.starts_with("pthread_") || is_inert(name) => Summary::nothing(),
        _ if is_output(name) => of_output(name),
        _ => return None,
    })
}

/// A hook that tells of an access or of a function, and changes nothing.
pub(super) fn is_announcement(name: &str) -> bool {
    let Some(hook) = name.strip_prefix("__tsan_") else { return false };
    ["read", "write", "unaligned", "volatile", "func_", "vptr_", "init", "mutex_", "acquire", "release"]
        .iter()
        .any(|start| hook.starts_with(start))
        || hook.starts_with("atomic_")
        || hook == "ignore_thread_begin"
        || hook == "ignore_thread_end"
}

/// The registers with the locks, atomics and other synchronisation objects that a call is about.
pub(super) fn lock_operands(name: &str) -> &'static [u8] {
    if atomic(name).is_some() {
        return &[RDI];
    }
    match name {
        "pthread_cond_wait"
        | "pthread_cond_timedwait"
        | "pthread_cond_clockwait"
        | "cnd_wait"
        | "cnd_timedwait" => &[RDI, RSI],
        _ if is_lock_function(name) => &[RDI],
        _ => &[],
    }
}

fn is_lock_function(name: &str) -> bool {
    const KINDS: [&str; 9] = [
        "pthread_mutex_",
        "pthread_rwlock_",
        "pthread_spin_",
        "pthread_cond_",
        "pthread_barrier_",
        "pthread_once",
        "sem_",
        "mtx_",
        "cnd_",
    ];
    KINDS.iter().any(|kind| name.starts_with(kind))
}

/// Functions that read and write nothing of the program's, and return nothing that depends on it.
fn is_inert(name: &str) -> bool {
    const NAMES: [&str; 34] = [
        "malloc",
        "calloc",
        "realloc",
        "aligned_alloc",
        "memalign",
        "free",
        "cfree",
        "abort",
        "exit",
        "_exit",
        "usleep",
        "sleep",
        "nanosleep",
        "sched_yield",
        "thrd_yield",
        "__errno_location",
        "__tls_get_addr",
        "__stack_chk_fail",
        "__assert_fail",
        "_Unwind_Resume",
        "__cxa_begin_catch",
        "__cxa_end_catch",
        "__cxa_allocate_exception",
        "__cxa_free_exception",
        "__cxa_throw",
        "__cxa_rethrow",
        "__cxa_atexit",
        "__cxa_guard_acquire",
        "__cxa_guard_release",
        "__gxx_personality_v0",
        "getpid",
        "gettid",
        "time",
        "clock",
    ];
    NAMES.contains(&name) || name.starts_with("_Zn") || name.starts_with("_Zd")
}

/// Functions that read what they are given, and keep and change none of it.
fn is_output(name: &str) -> bool {
    ["printf", "fprintf", "puts", "putchar", "putc", "fputs", "fputc", "fwrite", "write", "perror", "fflush"]
        .contains(&name)
        || matches!(name, "__printf_chk" | "__fprintf_chk" | "vprintf" | "vfprintf")
}

/// An operation of `__tsan_atomic…`.
struct Atomic {
    size: u32,
    loads: bool,
    stores: bool,
    exchange: Option<Exchange>,
}

/// Where a compare-exchange has the expected value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    /// Behind the second argument, which gets the found value if that is another one.
    InMemory,
    ByValue,
}

/// Reads the name of an atomic operation.
fn atomic(name: &str) -> Option<Atomic> {
    let (bits, operation) = name.strip_prefix("__tsan_atomic")?.split_once('_')?;
    let size = bits.parse::<u32>().ok()?.checked_div(8)?;
    let exchange = match operation {
        "compare_exchange_val" => Some(Exchange::ByValue),
        _ if operation.starts_with("compare_exchange") => Some(Exchange::InMemory),
        _ => None,
    };
    Some(Atomic { size, loads: operation != "store", stores: operation != "load", exchange })
}

fn of_atomic(operation: &Atomic, site: Load) -> Summary {
    let registers = |from: &[u8]| -> Vec<(Way, Source)> {
        let locations = from.iter().flat_map(|&register| Location::both(register));
        locations.map(|location| (Way::Value, Source::Register(location))).collect()
    };
    let is_wide = operation.size > 8;
    let mut loaded = vec![(Way::Value, Source::Load(site))];
    loaded.push((Way::Value, behind(RDI, operation.size)));
    loaded.extend(Location::both(RDI).map(|location| (Way::Address, Source::Register(location))));
    let (expected, new) = match (operation.exchange, is_wide) {
        (Some(Exchange::InMemory), false) => {
            (vec![(Way::Value, behind(RSI, operation.size))], registers(&[RDX]))
        }
        (Some(Exchange::InMemory), true) => {
            (vec![(Way::Value, behind(RSI, operation.size))], registers(&[RDX, RCX]))
        }
        (Some(Exchange::ByValue), false) => (registers(&[RSI]), registers(&[RDX])),
        (Some(Exchange::ByValue), true) => (registers(&[RSI, RDX]), registers(&[RCX, R8])),
        (None, false) => (Vec::new(), registers(&[RSI])),
        (None, true) => (Vec::new(), registers(&[RSI, RDX])),
    };
    let mut summary = Summary::nothing();
    if operation.loads {
        let mut result = loaded.clone();
        if operation.exchange == Some(Exchange::InMemory) {
            result.extend(expected.iter().cloned());
        }
        summary.results = results(if is_wide { &[RAX, RDX] } else { &[RAX] }, result);
        summary.pointers = [super::pointer::Pointer::ANY; 2];
    }
    if operation.stores {
        let mut stored = new;
        stored.extend(expected);
        if operation.loads {
            stored.extend(loaded.iter().cloned());
        }
        let certain = operation.exchange.is_none();
        summary.writes.push(write(RDI, Some((0, operation.size)), certain, stored));
    }
    if operation.exchange == Some(Exchange::InMemory) {
        summary.writes.push(write(RSI, Some((0, operation.size)), false, loaded));
    }
    summary
}

fn behind(register: u8, size: u32) -> Source {
    Source::Behind { register, offset: Some(0), size }
}

fn sources(mut all: Vec<(Way, Source)>) -> Sources {
    all.sort();
    all.into()
}

fn results(registers: &[u8], all: Vec<(Way, Source)>) -> Vec<(Location, Sources)> {
    let all = sources(all);
    let locations = registers.iter().flat_map(|&register| Location::both(register));
    locations.map(|location| (location, all.clone())).collect()
}

fn write(register: u8, range: Option<(i64, u32)>, certain: bool, all: Vec<(Way, Source)>) -> Write {
    Write { register, range, certain, sources: sources(all) }
}

fn addresses(registers: &[u8]) -> impl Iterator<Item = (Way, Source)> {
    let locations = registers.iter().flat_map(|&register| Location::both(register));
    locations.map(|location| (Way::Address, Source::Register(location)))
}

/// Returns the first argument.
fn returns_first(mut summary: Summary) -> Summary {
    let first = Location::both(RDI).map(|location| (Way::Value, Source::Register(location)));
    summary.results = results(&[RAX], first.to_vec());
    summary.pointers[0] = super::pointer::Pointer::At(super::pointer::Base::Argument(RDI), 0);
    summary
}

fn of_copy(site: Load) -> Summary {
    let mut copied = vec![
        (Way::Value, Source::Load(site)),
        (Way::Value, Source::Behind { register: RSI, offset: None, size: 0 }),
    ];
    copied.extend(addresses(&[RSI, RDX]));
    returns_first(Summary {
        writes: vec![write(RDI, None, true, copied)],
        length: Some(RDX),
        copies: true,
        ..Summary::nothing()
    })
}

fn of_fill() -> Summary {
    let mut filled = vec![(Way::Value, Source::Register(Location::low(RSI)))];
    filled.extend(addresses(&[RDX]));
    returns_first(Summary {
        writes: vec![write(RDI, None, true, filled)],
        length: Some(RDX),
        ..Summary::nothing()
    })
}

fn of_comparison(site: Load, length: Option<u8>) -> Summary {
    let mut compared = vec![(Way::Value, Source::Load(site))];
    for register in [RDI, RSI] {
        compared.push((Way::Value, Source::Behind { register, offset: None, size: 0 }));
    }
    compared.extend(addresses(&[RDI, RSI]));
    let length_sources = length.into_iter().flat_map(Location::both);
    compared.extend(length_sources.map(|location| (Way::Value, Source::Register(location))));
    Summary { results: results(&[RAX], compared), length, ..Summary::nothing() }
}

/// The thread may use its argument for as long as it runs.
fn of_thread_start() -> Summary {
    Summary { leaks: 1 << RCX, ..writes_pointer(RDI) }
}

fn writes_pointer(register: u8) -> Summary {
    let of_run = vec![(Way::Value, Source::Gap(Gap::External("the C library".into())))];
    Summary { writes: vec![write(register, Some((0, 8)), false, of_run)], ..Summary::nothing() }
}

/// An operation that may fail: whether it does depends on the object, as a load does.
fn of_attempt(site: Load) -> Summary {
    let mut state = vec![(Way::Value, Source::Load(site))];
    state.extend(addresses(&[RDI]));
    Summary { results: results(&[RAX], state), ..Summary::nothing() }
}

fn of_output(name: &str) -> Summary {
    let mut printed = vec![(Way::Value, Source::Gap(Gap::External(name.into())))];
    let registers = ARGUMENTS.into_iter().flat_map(Location::both);
    printed.extend(registers.map(|location| (Way::Value, Source::Register(location))));
    Summary { results: results(&[RAX], printed), ..Summary::nothing() }
}
