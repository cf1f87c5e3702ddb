//! The partial order relation (section 4.2), in the compact encoding of section 5.1.
//!
//! Only thread communication orders events of different threads. So a thread's events fall into *segments*,
//! within which every event has the same order to the rest of the world, and a vector clock is kept for each
//! segment instead of each event.

use threadbare_trace::{EventIndex, ThreadIndex, Trace, index_types};

use super::communication::Edge;

index_types! {
    /// A stretch of one thread's events without communication in between, as an index into [`Order`].
    Segment;
}

/// The partial order of a trace.
#[derive(Debug)]
pub struct Order {
    threads: usize,
    /// By event.
    segment: Vec<Segment>,
    /// By segment: its thread, and how many segments its thread had before it.
    place: Vec<(ThreadIndex, u32)>,
    /// By segment: for each thread, how many of its segments are over before this one begins.
    clocks: Vec<u32>,
}

impl Order {
    /// `edges` are those of the partial order and are sorted by where they end.
    pub fn new(trace: &Trace, edges: &[Edge]) -> Order {
        let threads = trace.threads.len();
        let sources = sources(edges);
        let mut order = Order {
            threads,
            segment: Vec::with_capacity(trace.events.len()),
            place: Vec::new(),
            clocks: Vec::new(),
        };
        let mut current: Vec<Option<Segment>> = vec![None; threads];
        // The thread's last event lets another thread go on.
        let mut speaks = vec![false; threads];
        let (mut next_edge, mut next_source) = (0, 0);
        for (index, event) in trace.indexed_events() {
            let thread = event.thread.index();
            let incoming = edges[next_edge..].iter().take_while(|edge| edge.to == index).count();
            if incoming > 0 || speaks[thread] || current[thread].is_none() {
                let segment = order.begin(event.thread, current[thread]);
                for edge in &edges[next_edge..next_edge + incoming] {
                    order.join(segment, order.segment[edge.from.index()]);
                }
                current[thread] = Some(segment);
            }
            next_edge += incoming;
            speaks[thread] = sources.get(next_source).is_some_and(|&source| source == index);
            next_source += usize::from(speaks[thread]);
            order.segment.push(current[thread].unwrap_or_default());
        }
        order
    }

    fn begin(&mut self, thread: ThreadIndex, previous: Option<Segment>) -> Segment {
        let segment = Segment::at(self.place.len());
        let number = match previous {
            Some(previous) => {
                let start = previous.index() * self.threads;
                self.clocks.extend_from_within(start..start + self.threads);
                self.place[previous.index()].1 + 1
            }
            None => {
                self.clocks.extend(std::iter::repeat_n(0, self.threads));
                0
            }
        };
        self.clocks[segment.index() * self.threads + thread.index()] = number;
        self.place.push((thread, number));
        segment
    }

    /// `segment` begins after `other` is over.
    fn join(&mut self, segment: Segment, other: Segment) {
        let (into, from) = (segment.index() * self.threads, other.index() * self.threads);
        for thread in 0..self.threads {
            self.clocks[into + thread] = self.clocks[into + thread].max(self.clocks[from + thread]);
        }
        let (thread, number) = self.place[other.index()];
        let entry = &mut self.clocks[into + thread.index()];
        *entry = (*entry).max(number + 1);
    }

    /// The segment of an event.
    pub fn segment(&self, event: EventIndex) -> Segment {
        self.segment[event.index()]
    }

    pub fn segments(&self) -> usize {
        self.place.len()
    }

    /// How many segments its thread had before it.
    pub fn number(&self, segment: Segment) -> u32 {
        self.place[segment.index()].1
    }

    /// How many segments of `thread` are over before this one begins.
    pub fn over(&self, segment: Segment, thread: ThreadIndex) -> u32 {
        self.clocks[segment.index() * self.threads + thread.index()]
    }

    /// The partial order relation between events of different threads, by their segments.
    pub fn before(&self, a: Segment, b: Segment) -> bool {
        let (thread, number) = self.place[a.index()];
        number < self.over(b, thread)
    }

    /// Neither comes before the other.
    pub fn independent(&self, a: Segment, b: Segment) -> bool {
        !self.before(a, b) && !self.before(b, a)
    }
}

/// Where edges begin, sorted, each once.
fn sources(edges: &[Edge]) -> Vec<EventIndex> {
    let mut sources: Vec<EventIndex> = edges.iter().map(|edge| edge.from).collect();
    sources.sort_unstable();
    sources.dedup();
    sources
}
