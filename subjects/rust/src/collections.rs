//! Collections behind a lock, in the manner of JDK 1.4, and the programs around two of them.
//!
//! Every method locks its collection. The bug of [`Synchronised::contains_all`]: it locks its receiver only and
//! iterates over the other collection without a lock; if that one changes between two steps, the fail-fast
//! iterator fails. The bug of [`Synchronised::add_all`]: it locks its receiver and then the argument, so that
//! two threads with opposite roles wait for each other. The fix of both copies the argument, under its lock,
//! before it locks the receiver.

use std::sync::Mutex;
use std::thread;

use crate::{FIXED, Shared, read_sizes, size};

/// What a collection is made of.
pub trait Elements: Default + Send {
    /// Where an iteration is.
    type Cursor: Default;

    fn contains(&self, value: usize) -> bool;
    fn add(&mut self, value: usize);
    fn remove(&mut self, value: usize);
    /// The element that comes next, and the cursor after it.
    fn next(&self, cursor: &Self::Cursor) -> Option<(usize, Self::Cursor)>;
}

/// A growable array.
#[derive(Default)]
pub struct ArrayElements {
    values: Vec<usize>,
}

impl Elements for ArrayElements {
    type Cursor = usize;

    fn contains(&self, value: usize) -> bool {
        self.values.contains(&value)
    }

    fn add(&mut self, value: usize) {
        self.values.push(value);
    }

    fn remove(&mut self, value: usize) {
        if let Some(index) = self.values.iter().position(|&present| present == value) {
            self.values.remove(index);
        }
    }

    fn next(&self, index: &usize) -> Option<(usize, usize)> {
        self.values.get(*index).map(|&value| (value, index + 1))
    }
}

const BUCKETS: usize = 4;

/// A hash set with chained buckets.
#[derive(Default)]
pub struct HashElements {
    buckets: [Vec<usize>; BUCKETS],
}

impl Elements for HashElements {
    type Cursor = (usize, usize);

    fn contains(&self, value: usize) -> bool {
        self.buckets[value % BUCKETS].contains(&value)
    }

    fn add(&mut self, value: usize) {
        if !self.contains(value) {
            self.buckets[value % BUCKETS].push(value);
        }
    }

    fn remove(&mut self, value: usize) {
        self.buckets[value % BUCKETS].retain(|&present| present != value);
    }

    fn next(&self, &(bucket, index): &Self::Cursor) -> Option<(usize, Self::Cursor)> {
        let (mut bucket, mut index) = (bucket, index);
        while bucket < BUCKETS {
            if let Some(&value) = self.buckets[bucket].get(index) {
                return Some((value, (bucket, index + 1)));
            }
            (bucket, index) = (bucket + 1, 0);
        }
        None
    }
}

/// An ordered tree. A removed element keeps its node, as a signpost.
#[derive(Default)]
pub struct TreeElements {
    root: Link,
}

type Link = Option<Box<Node>>;

struct Node {
    value: usize,
    present: bool,
    smaller: Link,
    larger: Link,
}

impl TreeElements {
    /// The link that leads to the value, or to where it would be.
    fn link_to(&mut self, value: usize) -> &mut Link {
        let mut link = &mut self.root;
        while link.as_ref().is_some_and(|node| node.value != value) {
            let node = link.as_mut().unwrap();
            link = if value < node.value { &mut node.smaller } else { &mut node.larger };
        }
        link
    }
}

/// The smallest value of at least `least`.
fn smallest(link: &Link, least: usize) -> Option<usize> {
    let node = link.as_ref()?;
    if node.value < least {
        return smallest(&node.larger, least);
    }
    let own = || node.present.then_some(node.value);
    smallest(&node.smaller, least).or_else(own).or_else(|| smallest(&node.larger, least))
}

impl Elements for TreeElements {
    /// The smallest value that may come next.
    type Cursor = usize;

    fn contains(&self, value: usize) -> bool {
        smallest(&self.root, value) == Some(value)
    }

    fn add(&mut self, value: usize) {
        let node = || Box::new(Node { value, present: false, smaller: None, larger: None });
        self.link_to(value).get_or_insert_with(node).present = true;
    }

    fn remove(&mut self, value: usize) {
        if let Some(node) = self.link_to(value) {
            node.present = false;
        }
    }

    fn next(&self, least: &usize) -> Option<(usize, usize)> {
        smallest(&self.root, *least).map(|value| (value, value + 1))
    }
}

/// A collection, the lock that its methods take, and the number of its changes.
pub struct Synchronised<E> {
    lock: Mutex<()>,
    changes: Shared<u32>,
    elements: Shared<E>,
}

/// Fails when the collection changes under it.
struct FailFast<'a, E: Elements> {
    collection: &'a Synchronised<E>,
    expected_changes: u32,
    cursor: E::Cursor,
}

impl<E: Elements> FailFast<'_, E> {
    fn has_next(&self) -> bool {
        // SAFETY: none, if the caller does not hold the collection's lock; see the module.
        unsafe { (*self.collection.elements.get()).next(&self.cursor).is_some() }
    }

    fn next(&mut self) -> Option<usize> {
        // SAFETY: as in `has_next`.
        let changes = unsafe { *self.collection.changes.get() };
        assert_eq!(changes, self.expected_changes, "the collection has changed");
        // SAFETY: as in `has_next`.
        let (value, cursor) = unsafe { (*self.collection.elements.get()).next(&self.cursor) }?;
        self.cursor = cursor;
        Some(value)
    }
}

impl<E: Elements> Synchronised<E> {
    /// A collection of the numbers below `count`.
    fn filled(count: usize) -> Synchronised<E> {
        let collection = Synchronised {
            lock: Mutex::new(()),
            changes: Shared::new(0),
            elements: Shared::new(E::default()),
        };
        (0..count).for_each(|value| collection.add(value));
        collection
    }

    /// Makes a change, which is counted first, so that an iterator does not miss one that is under way. The
    /// caller holds the lock.
    fn change(&self, change: impl FnOnce(&mut E)) {
        // SAFETY: the caller holds the lock, under which all changes are made.
        unsafe {
            *self.changes.get() += 1;
            change(&mut *self.elements.get());
        }
    }

    pub fn add(&self, value: usize) {
        let _guard = self.lock.lock().unwrap();
        self.change(|elements| elements.add(value));
    }

    pub fn remove(&self, value: usize) {
        let _guard = self.lock.lock().unwrap();
        self.change(|elements| elements.remove(value));
    }

    /// For whoever holds the lock, or does not.
    fn iterate(&self) -> FailFast<'_, E> {
        // SAFETY: as in `FailFast::has_next`.
        let expected_changes = unsafe { *self.changes.get() };
        FailFast { collection: self, expected_changes, cursor: E::Cursor::default() }
    }

    fn copy(&self) -> Vec<usize> {
        let _guard = self.lock.lock().unwrap();
        let mut iterator = self.iterate();
        let mut values = Vec::new();
        while iterator.has_next() {
            values.extend(iterator.next());
        }
        values
    }

    pub fn contains_all(&self, other: &Synchronised<E>) -> bool {
        if FIXED {
            let values = other.copy();
            let _guard = self.lock.lock().unwrap();
            // SAFETY: the lock is held.
            return values.iter().all(|&value| unsafe { (*self.elements.get()).contains(value) });
        }
        let _guard = self.lock.lock().unwrap();
        let mut iterator = other.iterate();
        let mut all = true;
        while all && iterator.has_next() {
            // SAFETY: the lock is held.
            all = iterator.next().is_some_and(|value| unsafe { (*self.elements.get()).contains(value) });
        }
        all
    }

    pub fn add_all(&self, other: &Synchronised<E>) {
        let mut values = if FIXED { other.copy() } else { Vec::new() };
        let _guard = self.lock.lock().unwrap();
        if !FIXED {
            values = other.copy();
        }
        values.into_iter().for_each(|value| self.change(|elements| elements.add(value)));
    }
}

/// One thread asks whether a collection contains all elements of a second one, while others remove elements
/// from the second.
pub fn ask_while_others_remove<E: Elements>() {
    let [elements, changers] = read_sizes([size("elements", 1, 1, 50), size("changers", 1, 1, 200)]);
    let (receiver, argument) = (Synchronised::<E>::filled(elements), Synchronised::<E>::filled(elements));
    let (receiver, argument) = (&receiver, &argument);
    thread::scope(|scope| {
        scope.spawn(move || receiver.contains_all(argument));
        for changer in 0..changers {
            scope.spawn(move || argument.remove(changer % elements));
        }
    });
}

/// Two threads add each of two collections to the other.
pub fn add_to_each_other<E: Elements>() {
    let [elements] = read_sizes([size("elements", 1, 1, 50)]);
    let (first, second) = (Synchronised::<E>::filled(elements), Synchronised::<E>::filled(elements));
    thread::scope(|scope| {
        scope.spawn(|| first.add_all(&second));
        scope.spawn(|| second.add_all(&first));
    });
}
