//! Runs inside the compiler.

use proc_macro::TokenStream;

#[proc_macro]
pub fn answer(_: TokenStream) -> TokenStream {
    "42".parse().expect("a number")
}
