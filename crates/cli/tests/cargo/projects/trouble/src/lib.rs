//! Tests that are hard on a tool.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn aborts_after_a_caught_panic() {
        thread::spawn(|| {
            let caught = std::panic::catch_unwind(|| panic!("nobody minds"));
            assert!(caught.is_err());
            std::process::abort();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn aborts() {
        thread::spawn(|| std::process::abort()).join().unwrap();
    }

    #[test]
    fn prints_10_mb() {
        let line = "x".repeat(1023);
        thread::spawn(move || (0..10 << 10).for_each(|_| println!("{line}"))).join().unwrap();
    }

    #[test]
    fn starts_a_process() {
        let status = thread::spawn(|| Command::new("true").status().unwrap()).join().unwrap();
        assert!(status.success());
    }

    #[test]
    fn takes_its_time() {
        let start = Instant::now();
        thread::spawn(|| thread::sleep(Duration::from_secs(3600))).join().unwrap();
        assert!(start.elapsed() >= Duration::from_secs(3600));
    }

    #[test]
    fn talks_over_loopback() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"hello").unwrap());
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        client.join().unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn counts_processors() {
        let count = thread::spawn(|| thread::available_parallelism().unwrap().get()).join().unwrap();
        assert_eq!(count, 4);
    }

    #[test]
    fn is_a_stress_test() {
        let counter = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000_000).for_each(|_| _ = counter.fetch_add(1, Ordering::Relaxed)));
            }
        });
        assert_eq!(counter.into_inner(), 40_000_000);
    }

    #[test]
    fn never_ends() {
        thread::spawn(|| {}).join().unwrap();
        loop {
            std::hint::black_box(0);
        }
    }
}
