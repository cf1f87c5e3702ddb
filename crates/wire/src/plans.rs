//! Plans, and memory that is shared, as words.

use std::sync::Arc;

use crate::words::{Garbled, Words, push_thread};
use threadbare_trace::{
    Afterwards, Demand, EventKind, Extent, Guidance, KeptBack, MovedCode, Order, Others, Outlasting, Plan,
    Policy, Preference, Relative, Sleeper, Step, ThreadIndex, Touch, Tracked, Turns, Until, Watched,
    Waypoint, Weights, WhichThread,
};

const FLAG_STRICT: u64 = 1;
const FLAG_LEARN: u64 = 2;
const FLAG_FUNCTIONS: u64 = 4;
const FLAG_RACE: u64 = 8;
const FLAG_RACES: u64 = 16;
const FLAG_DECISIONS: u64 = 32;
const FLAG_GUARDED: u64 = 64;

/// A plan as words, for the shared file.
pub fn encode_plan(plan: &Plan) -> Vec<u64> {
    let mut words = vec![
        (u64::from(plan.strict) * FLAG_STRICT)
            | (u64::from(plan.learn) * FLAG_LEARN)
            | (u64::from(plan.functions) * FLAG_FUNCTIONS)
            | (u64::from(plan.race.is_some()) * FLAG_RACE)
            | (u64::from(plan.races) * FLAG_RACES)
            | (u64::from(plan.decisions) * FLAG_DECISIONS)
            | (u64::from(plan.guarded) * FLAG_GUARDED),
        plan.max_events,
        plan.seed,
        u64::from(plan.spurious),
        u64::from(plan.outlasting.sleeps),
        plan.outlasting.longest,
    ];
    words.extend(plan.race.into_iter().flatten());
    push_policy(&mut words, &plan.policy);
    words.push(plan.turns.len() as u64);
    words.extend(
        plan.turns.iter().map(|turns| u64::from(turns.thread.number()) << 32 | u64::from(turns.count)),
    );
    words.push(plan.steps.len() as u64);
    for step in &plan.steps {
        push_thread(&mut words, &step.thread);
        match step.until {
            Until::End => words.push(0),
            Until::Before { kind, address, occurrence } => {
                words.extend([u64::from(kind as u8), address, u64::from(occurrence)]);
            }
        }
    }
    words.push(plan.watched.len() as u64);
    plan.watched.iter().for_each(|watched| push_watched(&mut words, watched));
    words.extend(encode_extents(plan.tracked.extents()));
    words
}

fn push_watched(words: &mut Vec<u64>, watched: &Watched) {
    match watched {
        Watched::Access(place) => words.extend([0, *place]),
        Watched::Call(place) => words.extend([1, *place]),
        Watched::Code(MovedCode { place, is_before_call, start, code, relatives }) => {
            words.extend([2, *place, u64::from(*is_before_call), *start, code.len() as u64]);
            words.extend(code.chunks(8).map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }));
            words.push(relatives.len() as u64);
            for Relative { at, from, target } in relatives {
                words.extend([u64::from(*at) << 32 | u64::from(*from), *target]);
            }
        }
    }
}

fn push_policy(words: &mut Vec<u64>, policy: &Policy) {
    match policy {
        Policy::RunToBlock => words.push(0),
        Policy::Random { seed } => words.extend([1, *seed]),
        Policy::Priorities { seed, changes } => {
            words.extend([2, *seed, changes.len() as u64]);
            words.extend(changes);
        }
        Policy::Ordered(Order { first, others, last }) => {
            words.extend([3, u64::from(*others == Others::ChildrenFirst), u64::from(last.is_some())]);
            last.iter().for_each(|thread| push_thread(words, thread));
            words.push(first.len() as u64);
            first.iter().for_each(|thread| push_thread(words, thread));
        }
        Policy::PartialOrder { seed } => words.extend([4, *seed]),
        Policy::Weighted(Weights { seed, interesting: [start, len], counts }) => {
            words.extend([5, *seed, *start, *len, counts.len() as u64]);
            for (thread, count) in counts {
                push_thread(words, thread);
                words.push(*count);
            }
        }
        Policy::Guided(guidance) => {
            words.push(6);
            push_guidance(words, guidance);
        }
        Policy::Awake { asleep, from } => {
            words.extend([7, *from, asleep.len() as u64]);
            for Sleeper { thread, touches } in asleep {
                words.extend([u64::from(thread.number()), touches.len() as u64]);
                for Touch { space, start, len, effect } in touches.iter() {
                    words.extend([u64::from(*space as u8) << 8 | u64::from(*effect as u8), *start, *len]);
                }
            }
        }
    }
}

/// Tables of distances travel apart (see [`encode_tables`](crate::encode_tables)).
fn push_guidance(words: &mut Vec<u64>, guidance: &Guidance) {
    words.extend([guidance.seed, u64::from(guidance.afterwards == Afterwards::Random)]);
    match &guidance.preference {
        Preference::Nearest(_) => words.push(0),
        Preference::None => words.push(1),
        Preference::Threads(threads) => {
            words.extend([2, threads.len() as u64]);
            threads.iter().for_each(|thread| push_thread(words, thread));
        }
    }
    words.push(guidance.waypoints.len() as u64);
    for Waypoint { points, thread, demand, kept_back } in guidance.waypoints.iter() {
        words.push(match demand {
            Demand::Pass => 0,
            Demand::Arrive(group) => u64::from(*group) + 1,
        });
        match thread {
            WhichThread::Any => words.push(0),
            WhichThread::Id(thread) => {
                words.push(1);
                push_thread(words, thread);
            }
            WhichThread::Variable(number) => words.extend([2, u64::from(*number)]),
        }
        words.push(points.len() as u64);
        words.extend(points);
        words.push(kept_back.len() as u64);
        for KeptBack { thread, before } in kept_back {
            push_thread(words, thread);
            words.push(*before);
        }
    }
}

/// The plan that was encoded.
pub fn decode_plan(words: &[u64]) -> Result<Plan, Garbled> {
    let mut words = Words(words);
    let (flags, max_events, seed) = (words.next()?, words.next()?, words.next()?);
    let spurious = u32::try_from(words.next()?).map_err(|_| Garbled)?;
    let sleeps = u32::try_from(words.next()?).map_err(|_| Garbled)?;
    let outlasting = Outlasting { sleeps, longest: words.next()? };
    let race = if flags & FLAG_RACE != 0 { Some([words.next()?, words.next()?]) } else { None };
    let policy = words.policy()?;
    let turns = (0..words.count()?)
        .map(|_| {
            words
                .next()
                .map(|word| Turns { thread: ThreadIndex::new((word >> 32) as u32), count: word as u32 })
        })
        .collect::<Result<_, _>>()?;
    let steps = (0..words.count()?)
        .map(|_| {
            let thread = words.thread()?;
            let until = match words.next()? {
                0 => Until::End,
                kind => Until::Before {
                    kind: u8::try_from(kind).ok().and_then(EventKind::from_byte).ok_or(Garbled)?,
                    address: words.next()?,
                    occurrence: u32::try_from(words.next()?).map_err(|_| Garbled)?,
                },
            };
            Ok(Step { thread, until })
        })
        .collect::<Result<_, _>>()?;
    let watched = (0..words.count()?).map(|_| words.watched()).collect::<Result<_, _>>()?;
    let tracked: Tracked = decode_extents(words.0)?.into_iter().collect();
    Ok(Plan {
        turns,
        steps,
        strict: flags & FLAG_STRICT != 0,
        policy,
        tracked,
        watched,
        learn: flags & FLAG_LEARN != 0,
        guarded: flags & FLAG_GUARDED != 0,
        races: flags & FLAG_RACES != 0,
        race,
        functions: flags & FLAG_FUNCTIONS != 0,
        decisions: flags & FLAG_DECISIONS != 0,
        spurious,
        outlasting,
        max_events,
        seed,
    })
}

/// Extents as words: how the runtime reports what it learnt, and the last part of a plan.
pub fn encode_extents(extents: &[Extent]) -> Vec<u64> {
    let mut words = vec![extents.len() as u64];
    for extent in extents {
        match extent {
            Extent::Fixed { start, len } => words.extend([0, *start, *len]),
            Extent::Heap { site, start, len } => words.extend([1, site[0], site[1], site[2], *start, *len]),
            Extent::Stack { thread, start, len } => {
                words.push(2);
                push_thread(&mut words, thread);
                words.extend([*start as u64, *len]);
            }
        }
    }
    words
}

/// The extents that were encoded.
pub fn decode_extents(words: &[u64]) -> Result<Vec<Extent>, Garbled> {
    let mut words = Words(words);
    (0..words.count()?)
        .map(|_| {
            Ok(match words.next()? {
                0 => Extent::Fixed { start: words.next()?, len: words.next()? },
                1 => Extent::Heap {
                    site: [words.next()?, words.next()?, words.next()?],
                    start: words.next()?,
                    len: words.next()?,
                },
                2 => {
                    Extent::Stack { thread: words.thread()?, start: words.next()? as i64, len: words.next()? }
                }
                _ => return Err(Garbled),
            })
        })
        .collect()
}

impl Words<'_> {
    fn policy(&mut self) -> Result<Policy, Garbled> {
        Ok(match self.next()? {
            0 => Policy::RunToBlock,
            1 => Policy::Random { seed: self.next()? },
            2 => Policy::Priorities {
                seed: self.next()?,
                changes: (0..self.count()?).map(|_| self.next()).collect::<Result<_, _>>()?,
            },
            3 => {
                let others = if self.next()? == 0 { Others::ParentsFirst } else { Others::ChildrenFirst };
                let last = if self.next()? == 0 { None } else { Some(self.thread()?) };
                let first = (0..self.count()?).map(|_| self.thread()).collect::<Result<_, _>>()?;
                Policy::Ordered(Order { first, others, last })
            }
            4 => Policy::PartialOrder { seed: self.next()? },
            5 => Policy::Weighted(Weights {
                seed: self.next()?,
                interesting: [self.next()?, self.next()?],
                counts: (0..self.count()?)
                    .map(|_| Ok((self.thread()?, self.next()?)))
                    .collect::<Result<_, _>>()?,
            }),
            6 => Policy::Guided(self.guidance()?),
            7 => Policy::Awake {
                from: self.next()?,
                asleep: (0..self.count()?).map(|_| self.sleeper()).collect::<Result<_, _>>()?,
            },
            _ => return Err(Garbled),
        })
    }

    fn sleeper(&mut self) -> Result<Sleeper, Garbled> {
        let thread = ThreadIndex::new(u32::try_from(self.next()?).map_err(|_| Garbled)?);
        let count = self.next()?;
        let touch = |_| {
            let (what, start, len) = (self.next()?, self.next()?, self.next()?);
            Touch::from_bytes((what >> 8) as u8, what as u8, start, len).ok_or(Garbled)
        };
        Ok(Sleeper { thread, touches: (0..count).map(touch).collect::<Result<_, _>>()? })
    }

    fn watched(&mut self) -> Result<Watched, Garbled> {
        match self.next()? {
            0 => Ok(Watched::Access(self.next()?)),
            1 => Ok(Watched::Call(self.next()?)),
            2 => Ok(Watched::Code(self.moved_code()?)),
            _ => Err(Garbled),
        }
    }

    fn moved_code(&mut self) -> Result<MovedCode, Garbled> {
        let (place, is_before_call, start) = (self.next()?, self.next()? != 0, self.next()?);
        let len = usize::try_from(self.next()?).map_err(|_| Garbled)?;
        if len > MovedCode::MAX_BYTES {
            return Err(Garbled);
        }
        let mut code = Vec::with_capacity(MovedCode::MAX_BYTES);
        for _ in 0..len.div_ceil(8) {
            code.extend(self.next()?.to_le_bytes());
        }
        code.truncate(len);
        let count = self.count()?;
        let relative = |_| {
            let (places, target) = (self.next()?, self.next()?);
            Ok(Relative { at: (places >> 32) as u32, from: places as u32, target })
        };
        let relatives = (0..count).map(relative).collect::<Result<_, _>>()?;
        Ok(MovedCode { place, is_before_call, start, code, relatives })
    }

    fn guidance(&mut self) -> Result<Guidance, Garbled> {
        let seed = self.next()?;
        let afterwards = if self.next()? == 0 { Afterwards::RunOn } else { Afterwards::Random };
        let preference = match self.next()? {
            0 => Preference::Nearest(Arc::default()),
            1 => Preference::None,
            2 => Preference::Threads((0..self.count()?).map(|_| self.thread()).collect::<Result<_, _>>()?),
            _ => return Err(Garbled),
        };
        let waypoints = (0..self.count()?).map(|_| self.waypoint()).collect::<Result<_, _>>()?;
        Ok(Guidance { seed, waypoints, preference, afterwards })
    }

    fn waypoint(&mut self) -> Result<Waypoint, Garbled> {
        let demand = match self.next()? {
            0 => Demand::Pass,
            group => Demand::Arrive(u8::try_from(group - 1).map_err(|_| Garbled)?),
        };
        let thread = match self.next()? {
            0 => WhichThread::Any,
            1 => WhichThread::Id(self.thread()?),
            2 => WhichThread::Variable(u8::try_from(self.next()?).map_err(|_| Garbled)?),
            _ => return Err(Garbled),
        };
        let points = (0..self.count()?).map(|_| self.next()).collect::<Result<_, _>>()?;
        let count = self.count()?;
        let kept_back = |_| Ok(KeptBack { thread: self.thread()?, before: self.next()? });
        let kept_back = (0..count).map(kept_back).collect::<Result<_, _>>()?;
        Ok(Waypoint { points, thread, demand, kept_back })
    }
}
