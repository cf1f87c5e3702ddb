// Small functions whose branches and stores depend on known loads. See values.c.
#![allow(static_mut_refs)]

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::*};

#[derive(Clone, Copy, PartialEq)]
pub struct Account {
    owner: u64,
    balance: i64,
    locked: bool,
}

#[no_mangle]
pub static mut AMOUNT: i64 = 1;
#[no_mangle]
pub static mut LIMIT: i64 = 2;
#[no_mangle]
pub static mut MODE: u32 = 3;
#[no_mangle]
pub static mut OUT: i64 = 0;
#[no_mangle]
pub static READY: AtomicBool = AtomicBool::new(false);
#[no_mangle]
pub static TURNS: AtomicU64 = AtomicU64::new(0);
#[no_mangle]
pub static STATE: AtomicI32 = AtomicI32::new(0);

#[inline(never)]
fn arithmetic() {
    unsafe {
        let sum = AMOUNT.wrapping_add(LIMIT);
        if sum > 10 { // branch: AMOUNT, LIMIT
            OUT = sum; // store: AMOUNT, LIMIT
        }
    }
}

#[inline(never)]
fn bounds(values: &[i64], index: usize) -> i64 {
    let value = values[index]; // branch: MODE
    if value > 3 { // branch: value
        return value;
    }
    0
}

#[inline(never)]
fn index_from_memory() {
    unsafe {
        let values = [AMOUNT, LIMIT, 7, 9];
        OUT = bounds(&values, MODE as usize); // store: AMOUNT, LIMIT
    }
}

#[inline(never)]
fn limit_if_positive() -> Option<i64> {
    let limit = unsafe { LIMIT };
    if limit > 0 { Some(limit) } else { None } // branch: LIMIT
}

#[inline(never)]
fn matched() {
    match limit_if_positive() { // branch: LIMIT
        Some(limit) => unsafe { OUT = limit }, // store: LIMIT
        None => unsafe { OUT = 1 },
    }
}

#[inline(never)]
fn checked(amount: i64) -> Result<i64, String> {
    if amount < 0 { // branch: AMOUNT
        return Err("negative".to_string());
    }
    Ok(amount + 1)
}

#[inline(never)]
fn question_mark() -> Result<(), String> {
    let value = checked(unsafe { AMOUNT })?; // branch: AMOUNT
    unsafe { OUT = value }; // store: AMOUNT
    Ok(())
}

#[inline(never)]
fn fields(account: &mut Account) {
    if !account.locked { // branch: locked
        account.balance += unsafe { AMOUNT }; // store: balance, AMOUNT
    }
}

#[inline(never)]
fn compared(a: &Account, b: &Account) {
    if a == b { // branch: PartialEq|eq
        unsafe { OUT = a.balance }; // store: balance|PartialEq
    }
}

trait Shape {
    fn area(&self) -> i64;
}
struct Square(i64);
struct Circle(i64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> i64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> i64 {
        self.0 * 3
    }
}

#[inline(never)]
fn dynamic(shape: &dyn Shape) {
    if shape.area() > unsafe { LIMIT } { // branch: LIMIT; call: shape|MODE
        unsafe { OUT = 2 };
    }
}

#[inline(never)]
fn summed(values: &[i64]) {
    let mut sum = 0;
    for value in values {
        sum += *value;
    }
    unsafe { OUT = sum }; // store: value
}

#[inline(never)]
fn closures() {
    let limit = unsafe { LIMIT };
    let above = |value: i64| value > limit;
    if above(unsafe { AMOUNT }) { // branch: LIMIT|limit, AMOUNT|value
        unsafe { OUT = 3 };
    }
}

#[inline(never)]
fn atomics() {
    if READY.load(Acquire) { // branch: READY|load|atomic_load
        let before = TURNS.fetch_add(unsafe { MODE } as u64, SeqCst);
        unsafe { OUT = before as i64 }; // store: TURNS|fetch_add|atomic_add
    }
    if STATE.compare_exchange(0, 1, SeqCst, Relaxed).is_ok() { // branch: STATE|compare_exchange|atomic_compare_exchange
        unsafe { OUT = 4 };
    }
}

#[inline(never)]
fn flag_kept(cell: &Cell<bool>) {
    cell.set(unsafe { MODE } > 2); // store: MODE
    if cell.get() { // branch: cell|get|MODE
        unsafe { OUT = 5 };
    }
}

#[inline(never)]
fn mutex(total: &Mutex<i64>) {
    let mut held = total.lock().unwrap();
    *held += unsafe { AMOUNT }; // store: held, AMOUNT
}

#[inline(never)]
fn larger<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[inline(never)]
fn generic() {
    if larger(unsafe { AMOUNT }, unsafe { LIMIT }) == 9 { // branch: AMOUNT, LIMIT
        unsafe { OUT = 6 };
    }
}

#[inline(never)]
fn made() -> Account {
    unsafe { Account { owner: 1, balance: AMOUNT, locked: LIMIT > 3 } }
}

#[inline(never)]
fn returned_struct() {
    let account = made();
    if account.locked { // branch: LIMIT
        unsafe { OUT = account.balance }; // store: AMOUNT
    }
}

fn main() {
    let given = std::env::args().count() as i64;
    unsafe {
        (AMOUNT, LIMIT, MODE) = (given, given * 2, given as u32);
    }
    arithmetic();
    index_from_memory();
    matched();
    let _ = question_mark();
    let mut account = Account { owner: unsafe { MODE } as u64, balance: unsafe { AMOUNT }, locked: false };
    fields(&mut account);
    compared(&account, &made());
    dynamic(if unsafe { MODE } > 2 { &Square(3) } else { &Circle(4) });
    summed(&[1, 2, unsafe { LIMIT }]);
    closures();
    atomics();
    flag_kept(&Cell::new(false));
    mutex(&Mutex::new(3));
    generic();
    returned_struct();
}
