//! The buffers of one call, of which some bytes have been transferred.

use std::ffi::{c_int, c_void};

use super::io;

/// What is left of them.
pub struct Parts(Vec<libc::iovec>);

impl Parts {
    /// # Safety
    /// There are so many parts, or none.
    pub unsafe fn new(parts: *const libc::iovec, count: c_int) -> Parts {
        match count {
            // SAFETY: the caller's promise.
            1.. => Parts(unsafe { std::slice::from_raw_parts(parts, count as usize) }.to_vec()),
            _ => Parts(Vec::new()),
        }
    }

    pub fn one(start: *const u8, len: usize) -> Parts {
        Parts(vec![libc::iovec { iov_base: start.cast_mut().cast(), iov_len: len }])
    }

    pub fn as_slice(&self) -> &[libc::iovec] {
        &self.0
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().map(|part| part.iov_len).sum()
    }

    /// Their beginning, which has at most so many bytes.
    pub fn up_to(&self, max: usize) -> Vec<libc::iovec> {
        let mut left = max;
        let shortened = self.0.iter().map_while(|part| {
            let iov_len = part.iov_len.min(left);
            let is_over = left == 0;
            left -= iov_len;
            (!is_over).then_some(libc::iovec { iov_len, ..*part })
        });
        shortened.collect()
    }

    /// So many bytes were transferred.
    fn advance(&mut self, mut count: usize) {
        for part in &mut self.0 {
            let step = part.iov_len.min(count);
            part.iov_base = part.iov_base.cast::<u8>().wrapping_add(step).cast::<c_void>();
            part.iov_len -= step;
            count -= step;
        }
        self.0.retain(|part| part.iov_len > 0);
    }

    /// Calls `transfer` until all bytes are transferred, or it fails, or is at the end, or has no more time. Like a
    /// system call, it fails only if nothing was transferred.
    pub fn all(&mut self, mut transfer: impl FnMut(&Parts) -> Option<isize>) -> isize {
        let (whole, mut done) = (self.bytes(), 0);
        loop {
            match transfer(self) {
                Some(count @ 1..) => done += count as usize,
                _ if done > 0 => return done as isize,
                end => return io::or_out_of_time(end),
            }
            if done >= whole {
                return done as isize;
            }
            self.advance(done - (whole - self.bytes()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes go from two buffers in pieces of three, and none is sent twice.
    #[test]
    fn pieces_of_several_parts() {
        let (one, other) = (*b"abcd", *b"efg");
        let list = [Parts::one(one.as_ptr(), 4), Parts::one(other.as_ptr(), 3)].map(|part| part.0[0]);
        let mut sent = Vec::new();
        // SAFETY: a list of two.
        let mut parts = unsafe { Parts::new(list.as_ptr(), 2) };
        let count = parts.all(|parts| {
            let piece = parts.up_to(3);
            // SAFETY: parts of the two arrays.
            let bytes = piece.iter().flat_map(|part| unsafe {
                std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len)
            });
            sent.push(bytes.copied().collect::<Vec<u8>>());
            Some(sent.last().map_or(0, Vec::len) as isize)
        });
        assert_eq!((count, sent), (7, vec![b"abc".to_vec(), b"def".to_vec(), b"g".to_vec()]));
    }
}
