//! `intercept!`: how a function of libc's is replaced.
//!
//! An entry looks like a function. It becomes an exported symbol of that name, which libc's own lies behind:
//!
//! ```text
//! intercept! {
//!     fn pthread_join(handle: pthread_t, result: *mut *mut c_void; pc) -> c_int {
//!         threads::join(handle, result, pc)
//!     }
//! }
//! ```
//!
//! While the runtime is inactive a call goes straight to libc's function. `when (condition)` replaces that test: the
//! body runs when the condition holds. `otherwise (expression)` is for functions that libc does not have under that
//! name, or that cannot be looked up: it is evaluated instead of the call of libc's function. `calling name` gives the
//! body libc's function, which is `unsafe`. `@ c"…"` names the version of libc's function where there are several. `fn
//! a | b (…)` exports two names for one function.
//!
//! `; pc` asks for the return address of the call, which is what a location is made from. Rust cannot ask for it, so
//! each symbol is a few instructions that put it into the register after the last argument and jump to the body. Six
//! arguments leave no such register.
//!
//! Unit tests of this crate export nothing: their own process must not run on the functions under test.

use std::sync::atomic::AtomicU64;

/// The stack pointer at the last call of an exported function, which points to the return address. All of the caller's
/// stack lies above it. 0 after a call that does not record it.
pub static ENTRY: AtomicU64 = AtomicU64::new(0);

/// Replaces functions of libc's; see the module.
macro_rules! intercept {
    ($(
        $(#[$meta:meta])*
        fn $name:ident $(| $alias:ident)* $(@ $version:literal)?
            ($($arg:ident: $ty:ty),* $(,)? $(; $pc:ident)?) $(-> $ret:ty)?
            $(, when ($($condition:tt)+))? $(, otherwise ($($otherwise:tt)+))? $(, calling $real:ident)?
        $body:block
    )+) => { $(
        const _: () = {
            #[inline(always)]
            #[allow(dead_code, reason = "an entry that never passes a call on has no use for it")]
            unsafe fn real($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller promises libc what a program does that calls this function.
                unsafe { $crate::entry::real::real!(next: $name $(@ $version)? ($($arg => $ty),*) $(-> $ret)?) }
            }
            $(#[$meta])*
            unsafe extern "C" fn stand_in($($arg: $ty,)* $($pc: u64)?) $(-> $ret)? {
                if $crate::entry::intercept::condition!($($($condition)+)?) {
                    $(let $real = real;)?
                    $body
                } else {
                    // SAFETY: the program's arguments, as it passed them. What stands in for libc's function takes the
                    // same.
                    unsafe { $crate::entry::intercept::otherwise!([real($($arg),*)] $($($otherwise)+)?) }
                }
            }
            $crate::entry::intercept::symbols!([$name $($alias)*] [$($arg)*] [$($pc)?]);
        };
    )+ };
}
pub(crate) use intercept;

/// When the body of an entry runs.
macro_rules! condition {
    () => {
        $crate::active()
    };
    ($($condition:tt)+) => {
        ($($condition)+)
    };
}
pub(crate) use condition;

/// What an entry does when its body does not run: the call of libc's function, or what is said instead.
macro_rules! otherwise {
    ([$($real:tt)+]) => {
        $($real)+
    };
    ([$($real:tt)+] $($otherwise:tt)+) => {
        $($otherwise)+
    };
}
pub(crate) use otherwise;

/// The exported symbols of an entry: each goes on to `stand_in`.
macro_rules! symbols {
    ([$($name:ident)+] $arguments:tt $pc:tt) => { $(
        const _: () = {
            $crate::entry::intercept::export! {
                #[unsafe(naked)]
                unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(
                        "mov [rip + {entry}], rsp",
                        $crate::entry::intercept::load_return_address!($arguments $pc),
                        "jmp {stand_in}",
                        entry = sym $crate::entry::intercept::ENTRY,
                        stand_in = sym stand_in,
                    )
                }
            }
        };
    )+ };
}
pub(crate) use symbols;

/// Exports functions under their own names, except from this crate's unit tests.
macro_rules! export {
    ($($item:item)+) => { $(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, allow(dead_code, non_snake_case))]
        $item
    )+ };
}
pub(crate) use export;

/// `hook! { name/arity => implementation; }`: exports `name`, a function of ThreadSanitizer's that takes `arity`
/// arguments. The implementation takes one more, the return address. There is nothing to pass a call on to.
macro_rules! hook {
    ($($name:ident / $arity:tt => $target:path;)+) => { $crate::entry::intercept::export! { $(
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "mov [rip + {entry}], rsp",
                $crate::entry::intercept::load_return_address!($arity),
                "jmp {target}",
                entry = sym $crate::entry::intercept::ENTRY,
                target = sym $target,
            )
        }
    )+ } };
}
pub(crate) use hook;

/// Into the register of the argument after the last.
macro_rules! load_return_address {
    (0) => {
        "mov rdi, [rsp]"
    };
    (1) => {
        "mov rsi, [rsp]"
    };
    (2) => {
        "mov rdx, [rsp]"
    };
    (3) => {
        "mov rcx, [rsp]"
    };
    (4) => {
        "mov r8, [rsp]"
    };
    (5) => {
        "mov r9, [rsp]"
    };
    ($arguments:tt []) => {
        ""
    };
    ([] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(0)
    };
    ([$a:ident] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(1)
    };
    ([$a:ident $b:ident] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(2)
    };
    ([$a:ident $b:ident $c:ident] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(3)
    };
    ([$a:ident $b:ident $c:ident $d:ident] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(4)
    };
    ([$a:ident $b:ident $c:ident $d:ident $e:ident] $pc:tt) => {
        $crate::entry::intercept::load_return_address!(5)
    };
}
pub(crate) use load_return_address;
