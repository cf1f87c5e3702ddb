//! Bugs in places whose names the compiler makes: closures, copies of generic functions, methods of traits.

static mut SUM: u32 = 0;

trait Add {
    fn add(&self);
}

struct By<T>(T);

impl<T: Copy + Into<u32>> Add for By<T> {
    fn add(&self) {
        unsafe { SUM += self.0.into() }
    }
}

fn both(f: impl Fn() + Send + Copy + 'static) {
    let other = std::thread::spawn(f);
    f();
    other.join().unwrap();
    assert_eq!(unsafe { SUM }, 2);
}

#[test]
fn a() {
    both(|| unsafe { SUM += 1 });
}

#[test]
fn b() {
    both(|| By(1u8).add());
}
