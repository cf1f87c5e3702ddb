//! Tests that are hard on a tool.

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::process::{Command, Stdio};
    use std::sync::Mutex;
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
    fn begins_long_before_its_threads() {
        let count = AtomicU64::new(0);
        for _ in 0..30_000 {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let add = || {
            let seen = count.load(Ordering::SeqCst);
            count.store(seen + 1, Ordering::SeqCst);
        };
        thread::scope(|scope| {
            scope.spawn(add);
            scope.spawn(add);
        });
        assert_eq!(count.into_inner(), 30_002);
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
    fn talks_with_a_process() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut to_cat = cat.stdin.take().unwrap();
        let writer = thread::spawn(move || to_cat.write_all(b"hello").unwrap());
        let mut text = String::new();
        cat.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert!(cat.wait().unwrap().success());
        assert_eq!(text, "hello");
    }

    #[test]
    fn makes_files_and_removes_them() {
        let directory = std::env::temp_dir().join(format!("trouble-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("counter");
        std::fs::write(&file, "0").unwrap();
        let lock = Mutex::new(());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _alone = lock.lock().unwrap();
                    let number: u32 = std::fs::read_to_string(&file).unwrap().parse().unwrap();
                    std::fs::write(&file, (number + 1).to_string()).unwrap();
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn leaves_files_behind() {
        let directory = std::env::temp_dir().join(format!("trouble-left-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let file = directory.join("file");
        thread::spawn(move || std::fs::write(file, "left").unwrap()).join().unwrap();
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
    fn closes_half_and_waits_with_a_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = thread::spawn(move || {
            let mut text = String::new();
            let mut stream = listener.accept().unwrap().0;
            stream.read_to_string(&mut text).unwrap();
            (text, stream)
        });
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (text, _stream) = server.join().unwrap();
        assert_eq!(text, "hello");
        client.set_read_timeout(Some(Duration::from_secs(3600))).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
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
    fn is_long_and_fails() {
        let counter = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..2_000_000).for_each(|_| _ = counter.fetch_add(1, Ordering::Relaxed)));
            }
        });
        assert_eq!(counter.into_inner(), 0);
    }

    #[test]
    fn never_ends() {
        thread::spawn(|| {}).join().unwrap();
        loop {
            std::hint::black_box(0);
        }
    }
}
