//! Control flow of many shapes, for comparison with LLVM's own list of blocks.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, RwLock};

/// The program is never run, but it must link.
macro_rules! callbacks {
    ($($name:ident)*) => { $(#[unsafe(no_mangle)] pub extern "C" fn $name() {})* };
}
callbacks! {
    __sanitizer_cov_cfs_init __sanitizer_cov_pcs_init
    __sanitizer_cov_trace_pc_guard_init __sanitizer_cov_trace_pc_guard
}

static HITS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Number(i64),
    Name(String),
    Add(Box<Expression>, Box<Expression>),
    Multiply(Box<Expression>, Box<Expression>),
    Negate(Box<Expression>),
    Choose(Box<[Expression; 3]>),
    Call(String, Vec<Expression>),
}

#[derive(Debug)]
enum Problem {
    Missing(String),
    Overflow,
    Arity { wanted: usize, given: usize },
}

impl Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Missing(name) => write!(out, "no {name}"),
            Problem::Overflow => out.write_str("too large"),
            Problem::Arity { wanted, given } => write!(out, "{given} instead of {wanted}"),
        }
    }
}

#[inline(never)]
fn evaluate(expression: &Expression, names: &HashMap<String, i64>) -> Result<i64, Problem> {
    HITS.fetch_add(1, Ordering::Relaxed);
    Ok(match expression {
        Expression::Number(number) => *number,
        Expression::Name(name) => *names.get(name).ok_or_else(|| Problem::Missing(name.clone()))?,
        Expression::Add(a, b) => {
            evaluate(a, names)?.checked_add(evaluate(b, names)?).ok_or(Problem::Overflow)?
        }
        Expression::Multiply(a, b) => {
            evaluate(a, names)?.checked_mul(evaluate(b, names)?).ok_or(Problem::Overflow)?
        }
        Expression::Negate(a) => -evaluate(a, names)?,
        Expression::Choose(parts) => {
            if evaluate(&parts[0], names)? != 0 { evaluate(&parts[1], names)? } else { evaluate(&parts[2], names)? }
        }
        Expression::Call(name, arguments) => {
            let values: Result<Vec<i64>, Problem> = arguments.iter().map(|a| evaluate(a, names)).collect();
            let values = values?;
            match (name.as_str(), values.as_slice()) {
                ("max", [a, b]) => *a.max(b),
                ("min", [a, b]) => *a.min(b),
                ("abs", [a]) => a.abs(),
                ("max" | "min", more) => return Err(Problem::Arity { wanted: 2, given: more.len() }),
                ("abs", more) => return Err(Problem::Arity { wanted: 1, given: more.len() }),
                _ => return Err(Problem::Missing(name.clone())),
            }
        }
    })
}

/// A machine with a dense switch inside a loop.
#[inline(never)]
fn interpret(code: &[u8], input: &mut dyn Iterator<Item = u64>) -> Vec<u64> {
    let (mut at, mut stack, mut output) = (0, Vec::new(), Vec::new());
    'run: while let Some(&operation) = code.get(at) {
        at += 1;
        match operation {
            0 => break 'run,
            1 => stack.push(input.next().unwrap_or_default()),
            2 => {
                let (a, b) = (stack.pop().unwrap(), stack.pop().unwrap());
                stack.push(a.wrapping_add(b));
            }
            3 => {
                let top = stack.last().copied().expect("a value");
                stack.push(top);
            }
            4 => output.push(stack.pop().unwrap_or(4)),
            5 => at = usize::from(code[at]),
            6 if stack.is_empty() => continue,
            6 => at += 1,
            7 => stack.clear(),
            8 => stack.reverse(),
            9 => output.extend(stack.drain(..)),
            b'a'..=b'z' => stack.push(u64::from(operation - b'a')),
            other => panic!("operation {other} at {at}"),
        }
    }
    output
}

#[inline(never)]
fn sparse(key: u64) -> &'static str {
    match key {
        3 => "three",
        1000 => "thousand",
        1001 => "thousand and one",
        70_000..=80_000 => "many",
        u64::MAX => "all",
        _ => "other",
    }
}

trait Shape: Send + Sync {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        "shape".to_owned()
    }
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        if self.0 < 0.0 { f64::NAN } else { 3.14 * self.0 * self.0 }
    }
    fn name(&self) -> String {
        format!("circle of {}", self.0)
    }
}

/// Drops while it panics.
struct Noisy<'a>(&'a Mutex<Vec<u32>>, u32);

impl Drop for Noisy<'_> {
    fn drop(&mut self) {
        if let Ok(mut dropped) = self.0.lock() {
            dropped.push(self.1);
        }
    }
}

#[inline(never)]
fn nested_drops(log: &Mutex<Vec<u32>>, numbers: &[u32]) -> u32 {
    let _first = Noisy(log, 1);
    let mut sum = 0;
    for (index, number) in numbers.iter().enumerate() {
        let _inner = Noisy(log, *number);
        if *number > 9 {
            return sum;
        }
        sum += numbers[(index + *number as usize) % 7];
    }
    let _last = Noisy(log, 2);
    sum / (numbers.len() as u32)
}

#[inline(never)]
fn matrix<const N: usize>(a: &[[i32; N]; N], b: &[[i32; N]; N]) -> [[i32; N]; N] {
    let mut out = [[0; N]; N];
    for i in 0..N {
        for j in 0..N {
            for k in 0..N {
                out[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    out
}

#[inline(never)]
fn text(input: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in input.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *counts.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    counts
}

#[inline(never)]
fn even(n: u32) -> bool {
    n == 0 || odd(n - 1)
}

#[inline(never)]
fn odd(n: u32) -> bool {
    n != 0 && even(n - 1)
}

fn threads() -> u64 {
    let shared = Arc::new((Mutex::new(0_u64), Condvar::new(), RwLock::new(vec![1_u64, 2, 3])));
    let (sender, receiver) = channel();
    let workers: Vec<_> = (0..3_u64)
        .map(|number| {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            std::thread::spawn(move || {
                let (count, changed, list) = &*shared;
                let sum: u64 = list.read().unwrap().iter().sum();
                *count.lock().unwrap() += sum * number;
                changed.notify_all();
                if number == 1 {
                    list.write().unwrap().push(number);
                }
                sender.send(number).unwrap();
            })
        })
        .collect();
    drop(sender);
    let received: u64 = receiver.iter().sum();
    for worker in workers {
        worker.join().unwrap();
    }
    let mut count = shared.0.lock().unwrap();
    while *count == 0 {
        count = shared.1.wait(count).unwrap();
    }
    *count + received
}

fn main() {
    let names = HashMap::from([("x".to_owned(), 3), ("y".to_owned(), 4)]);
    let x = || Box::new(Expression::Name("x".to_owned()));
    let tree = Expression::Call(
        "max".to_owned(),
        vec![
            Expression::Add(x(), Box::new(Expression::Negate(x()))),
            Expression::Choose(Box::new([*x(), Expression::Multiply(x(), x()), Expression::Number(1)])),
        ],
    );
    match evaluate(&tree, &names) {
        Ok(value) => println!("{value}"),
        Err(problem) => eprintln!("{problem}"),
    }
    let arguments: Vec<String> = std::env::args().collect();
    let mut numbers = arguments.iter().map(|argument| argument.len() as u64);
    println!("{:?}", interpret(arguments[0].as_bytes(), &mut numbers));
    println!("{}", sparse(arguments.len() as u64));
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.0))];
    for shape in &shapes {
        println!("{} {}", shape.name(), shape.area());
    }
    let log = Mutex::new(Vec::new());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        nested_drops(&log, &arguments.iter().map(|argument| argument.len() as u32).collect::<Vec<_>>())
    }));
    println!("{caught:?} {:?}", matrix(&[[1; 4]; 4], &[[2; 4]; 4]));
    println!("{:?} {} {}", text(&arguments.join(" ")), even(arguments.len() as u32), threads());
    if HITS.load(Ordering::SeqCst) > 1 << 40 {
        std::process::exit(3);
    }
}
