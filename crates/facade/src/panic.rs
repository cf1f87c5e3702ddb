//! `std::panic`, and how the runtime learns of panics.

pub use std::panic::*;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send + 'static>;

unsafe extern "C" {
    /// The runtime's: a thread panics with these words, in this place.
    fn __threadbare_panic(message: *const u8, length: usize);
}

pub fn set_hook(hook: Hook) {
    std::panic::set_hook(telling(hook));
}

/// The hook, after the runtime has been told.
fn telling(hook: Hook) -> Hook {
    Box::new(move |info| {
        tell(info);
        hook(info);
    })
}

fn tell(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let words = text.unwrap_or("a panic whose payload is no text");
    // SAFETY: a pointer and its length; the runtime copies.
    unsafe { __threadbare_panic(words.as_ptr(), words.len()) };
}

/// Stands before the default hook from the very beginning.
extern "C" fn install() {
    std::panic::set_hook(telling(std::panic::take_hook()));
}

#[used]
#[unsafe(link_section = ".init_array")]
static INSTALL: extern "C" fn() = install;
