//! Tables of distances, in a region of their own: they are large and the same for many plans.
//!
//! The region begins with the number of tables. Then each table has two words: where its slots begin, and how many there
//! are. A slot is two words, the address and its distances. The number of slots is a power of two, and an address stands
//! in the first free slot from its hash on, so that the runtime finds it with one or two looks.

use threadbare_trace::{Distance, DistanceTable};

/// Words that come before the descriptions of the tables.
const HEAD: usize = 1;
/// Words that describe a table, and words of a slot.
const PAIR: usize = 2;

fn hash(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Tables as words, for the shared file.
pub fn encode_tables(tables: &[DistanceTable]) -> Vec<u64> {
    let slots = |table: &DistanceTable| (table.entries.len() * 2).next_power_of_two();
    let mut words = vec![tables.len() as u64];
    let mut start = HEAD + tables.len() * PAIR;
    for table in tables {
        words.extend([start as u64, slots(table) as u64]);
        start += slots(table) * PAIR;
    }
    words.resize(start, 0);
    for (number, table) in tables.iter().enumerate() {
        let (start, count) = (words[HEAD + number * PAIR] as usize, slots(table) as u64);
        for &(address, Distance { to_waypoint, to_return }) in &table.entries {
            let mut slot = hash(address) & (count - 1);
            while ![0, address].contains(&words[start + slot as usize * PAIR]) {
                slot = (slot + 1) & (count - 1);
            }
            words[start + slot as usize * PAIR] = address;
            words[start + slot as usize * PAIR + 1] = u64::from(to_waypoint) << 32 | u64::from(to_return);
        }
    }
    words
}

/// Tables that were encoded.
#[derive(Clone, Copy)]
pub struct Tables<'a>(pub &'a [u64]);

impl Tables<'_> {
    /// The distances from `address`, by the table with this number; `None` if it does not know the address.
    #[inline]
    pub fn distance(&self, number: usize, address: u64) -> Option<Distance> {
        let (start, count) = (*self.0.get(HEAD + number * PAIR)?, *self.0.get(HEAD + number * PAIR + 1)?);
        let last = count.checked_sub(1).filter(|_| address != 0)?;
        let mut slot = hash(address) & last;
        loop {
            let at = (start + slot * PAIR as u64) as usize;
            match *self.0.get(at)? {
                0 => return None,
                found if found == address => {
                    let word = *self.0.get(at + 1)?;
                    return Some(Distance { to_waypoint: (word >> 32) as u32, to_return: word as u32 });
                }
                _ => slot = (slot + 1) & last,
            }
        }
    }
}
