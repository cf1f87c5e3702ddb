fn main() {
    let thread = std::thread::spawn(|| 1);
    assert_eq!(thread.join().unwrap(), 1);
}
