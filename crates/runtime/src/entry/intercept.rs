//! How the program's calls come in.
//!
//! Each function that the runtime provides under a name of libc's or ThreadSanitizer's is a few instructions
//! that add one argument, the return address, and jump to its Rust implementation. The return address is what
//! a location is made from, and Rust has no other way to ask for it.

/// `intercept! { name/arity => implementation; }`: exports `name`, taking `arity` arguments. The
/// implementation takes one more, the return address.
macro_rules! intercept {
    ($($name:ident / $arity:tt => $target:path;)+) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!($crate::entry::intercept::load_return_address!($arity), "jmp {}", sym $target)
        }
    )+ };
}
pub(crate) use intercept;

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
}
pub(crate) use load_return_address;
