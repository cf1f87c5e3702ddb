//! Which reads of a run decide where its threads go (Algorithm 2, on the compiled program).
//!
//! A read decides if its value feeds a branch, or an address, a lock or an indirect call: another element, lock or function
//! is another path too. It also decides if its value feeds a store, and what is stored there is read by a read that
//! decides. The code says which loads feed what; the run says which store wrote to what a load reads.
//!
//! Memory that only one thread uses has no events. A load and a store of such memory are taken together if the same thread
//! may do both, and if the code names the same variable, or one of them names none. Where the code cannot be followed,
//! every read in the same activation of the function counts. Without the code every read does.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use threadbare_program::Program;
use threadbare_program::dependence::{Gap, Load, LoadSet};
use threadbare_program::flow::{Callee, ModuleCode};
use threadbare_search::reorder::History;
use threadbare_search::reorder::variable::Variable;
use threadbare_trace::{Event, EventIndex, LocationIndex, StackIndex};

/// The code of a program, as far as runs came to it. All addresses are those of the process.
pub struct Code {
    program: Option<Arc<Program>>,
    branches_only: bool,
    /// By entry: the functions that were looked at, and those that each calls.
    calls: FxHashMap<u64, Vec<u64>>,
    /// The loads that feed a branch and the like.
    first: FxHashSet<Source>,
    /// By the hook that announces it.
    stores: FxHashMap<u64, Store>,
    /// Functions with a branch or a store of which not all loads are known, by entry.
    unknown: FxHashSet<u64>,
    /// Functions with a branch or a store that depends on arguments from callers that are not known, by entry.
    unknown_arguments: FxHashSet<u64>,
}

/// A load, by the hook that announces it, and the variable that the code names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Source {
    hook: u64,
    /// The function that it is in, or in whose place it is loaded by a function that is called.
    function: u64,
    /// If it is not a constant, the code says nothing of where the load reads.
    fixed: Option<u64>,
}

/// The loads that feed what is stored, and the variable that the code names.
#[derive(Default)]
struct Store {
    function: u64,
    fixed: Option<u64>,
    loads: Vec<Source>,
}

impl Code {
    pub fn new(program: Option<Arc<Program>>, branches_only: bool) -> Code {
        Code {
            program,
            branches_only,
            calls: FxHashMap::default(),
            first: FxHashSet::default(),
            stores: FxHashMap::default(),
            unknown: FxHashSet::default(),
            unknown_arguments: FxHashSet::default(),
        }
    }

    /// By event: it is a read that decides.
    pub fn deciding(&mut self, history: &History) -> Vec<bool> {
        let events = &history.trace().events;
        let Some(program) = self.program.clone() else {
            return events.iter().map(|event| event.kind.is_read()).collect();
        };
        let stacks = Stacks::of(&program, history);
        for &entry in stacks.functions.values().flatten() {
            self.look_at(&program, entry);
        }
        let mut walk = Walk::new(self, history, stacks.threads(history, &self.calls));
        walk.follow();
        let unknown = stacks.unknown(history, &self.unknown, &self.unknown_arguments);
        let is_unknown = |event: &Event| stacks.of_event(event).iter().any(|entry| unknown.contains(entry));
        let decides = |(index, event): (EventIndex, &Event)| {
            event.kind.is_read() && (walk.decides(index) || is_unknown(event))
        };
        history.trace().indexed_events().map(decides).collect()
    }

    /// The call that returns to this address only tries to do something, or only for a limited time.
    pub fn is_try(&self, address: u64) -> bool {
        let site = self.program.as_ref().and_then(|program| program.site(address));
        site.is_some_and(|site| ["try", "timed", "clock"].iter().any(|word| site.callee.contains(word)))
    }

    /// Looks at the function with this entry, and at those that it calls.
    fn look_at(&mut self, program: &Program, entry: u64) {
        let mut open = vec![entry];
        while let Some(entry) = open.pop() {
            if self.calls.contains_key(&entry) {
                continue;
            }
            let Some(code) = program.code_at(entry) else { continue };
            let linked = code.linked(entry);
            self.add(&code, linked);
            let callees = code.call_graph().calls(linked).iter().filter_map(|site| match site.callee {
                Callee::Function(callee) => Some(code.relocated(callee)),
                _ => None,
            });
            let callees: Vec<u64> = callees.collect();
            open.extend(&callees);
            self.calls.insert(entry, callees);
        }
    }

    fn add(&mut self, code: &ModuleCode<'_>, entry: u64) {
        let Some(dependence) = code.dependence(entry) else { return };
        let mut lists = vec![&dependence.branches];
        if !self.branches_only {
            lists.extend([&dependence.addresses, &dependence.locks, &dependence.indirect_calls]);
        }
        if !self.branches_only {
            let dependents = lists.iter().copied().chain([&dependence.stores]).flatten();
            for gap in dependents.flat_map(|dependent| &dependent.loads.gaps) {
                let comes_with_arguments =
                    matches!(gap, Gap::UnknownCallers(_) | Gap::ManyCallers(_) | Gap::DeepCalls);
                let unknown =
                    if comes_with_arguments { &mut self.unknown_arguments } else { &mut self.unknown };
                unknown.insert(code.relocated(entry));
            }
        }
        for dependent in lists.into_iter().flatten() {
            self.first.extend(sources(code, entry, &dependent.loads, self.branches_only));
        }
        for store in &dependence.stores {
            let Some(hook) = store.hook else { continue };
            let known = self.stores.entry(code.relocated(hook)).or_default();
            known.function = code.relocated(entry);
            known.fixed = code.fixed_address(store.address).map(|address| code.relocated(address));
            known.loads.extend(sources(code, entry, &store.loads, self.branches_only));
        }
    }
}

fn sources(code: &ModuleCode<'_>, entry: u64, loads: &LoadSet, branches_only: bool) -> Vec<Source> {
    let through_address = if branches_only { &[] } else { loads.through_address.as_slice() };
    let all = loads.value.iter().chain(through_address).chain(&loads.through_control);
    let source = |load: &Load| {
        let fixed = code.fixed_address(load.address).map(|address| code.relocated(address));
        Some(Source { hook: code.relocated(load.hook?), function: code.relocated(entry), fixed })
    };
    all.filter_map(source).collect()
}

/// The functions that each call stack goes through, by entry, innermost first.
struct Stacks {
    functions: FxHashMap<(LocationIndex, StackIndex), Vec<u64>>,
}

impl Stacks {
    /// Functions of files without any access are left out: they are not instrumented, so none of their reads is seen.
    fn of(program: &Program, history: &History) -> Stacks {
        let trace = history.trace();
        let base = |code: &ModuleCode<'_>| code.relocated(0);
        let accesses = trace.events.iter().filter(|event| event.kind.is_access());
        let places: FxHashSet<LocationIndex> = accesses.map(|event| event.location).collect();
        let files = places.into_iter().filter_map(|place| program.code_at(trace.location(place).address));
        let instrumented: FxHashSet<u64> = files.map(|code| base(&code)).collect();
        let mut by_address: FxHashMap<u64, Option<u64>> = FxHashMap::default();
        let mut function = |address: u64| {
            *by_address.entry(address).or_insert_with(|| {
                let code = program.code_at(address).filter(|code| instrumented.contains(&base(code)))?;
                Some(code.relocated(code.function_at(code.linked(address).checked_sub(1)?)?))
            })
        };
        let mut functions: FxHashMap<(LocationIndex, StackIndex), Vec<u64>> = FxHashMap::default();
        for event in &trace.events {
            functions.entry((event.location, event.stack)).or_insert_with(|| {
                let calls = trace.calls(event.location, event.stack);
                calls.filter_map(|call| function(trace.location(call).address)).collect()
            });
        }
        Stacks { functions }
    }
}

/// Threads by the last six bits of their index.
type Threads = u64;

impl Stacks {
    fn of_event(&self, event: &Event) -> &[u64] {
        self.functions.get(&(event.location, event.stack)).map_or(&[], Vec::as_slice)
    }

    /// The functions whose reads all count: those that cannot be followed, and those that pass arguments to a function
    /// whose arguments cannot be. That is its caller, or whoever creates the thread that begins with it.
    fn unknown(
        &self,
        history: &History,
        unknown: &FxHashSet<u64>,
        unknown_arguments: &FxHashSet<u64>,
    ) -> FxHashSet<u64> {
        let callers = self.functions.values().flat_map(|functions| functions.windows(2));
        let callers = callers.filter(|pair| unknown_arguments.contains(&pair[0])).map(|pair| pair[1]);
        let creators = history.trace().indexed_events().filter_map(|(index, event)| {
            let first = *history.events_of(history.forked(index)?).first()?;
            let outermost = self.of_event(history.event(first)).last()?;
            unknown_arguments.contains(outermost).then(|| self.of_event(event).first().copied())?
        });
        unknown.iter().copied().chain(callers).chain(creators).collect()
    }

    /// By function: the threads that may run it.
    fn threads(&self, history: &History, calls: &FxHashMap<u64, Vec<u64>>) -> FxHashMap<u64, Threads> {
        let mut threads: FxHashMap<u64, Threads> = FxHashMap::default();
        let mut open: Vec<(u64, Threads)> = Vec::new();
        for event in &history.trace().events {
            let thread = 1 << (event.thread.number() % Threads::BITS);
            let functions = self.of_event(event).iter();
            open.extend(functions.map(|&function| (function, thread)));
        }
        open.sort_unstable();
        open.dedup();
        while let Some((function, new)) = open.pop() {
            let known = threads.entry(function).or_default();
            if *known & new != new {
                *known |= new;
                open.extend(calls.get(&function).into_iter().flatten().map(|&callee| (callee, new)));
            }
        }
        threads
    }
}

/// From loads that decide to stores that they read from, and on to the loads that feed these.
struct Walk<'a> {
    code: &'a Code,
    history: &'a History,
    /// By function: the threads that may run it.
    threads: FxHashMap<u64, Threads>,
    /// The reads and writes of the run, by the hook that announces them.
    by_hook: FxHashMap<u64, Vec<EventIndex>>,
    /// The writes of the run, by variable.
    writes: FxHashMap<Variable, Vec<EventIndex>>,
    deciding: FxHashSet<u64>,
    /// What decides, as far as it was not followed yet.
    open: Vec<Source>,
    /// Variables and stores that were followed.
    followed_variables: FxHashSet<Variable>,
    followed_stores: FxHashSet<u64>,
}

impl<'a> Walk<'a> {
    fn new(code: &'a Code, history: &'a History, threads: FxHashMap<u64, Threads>) -> Walk<'a> {
        let trace = history.trace();
        let mut by_hook: FxHashMap<u64, Vec<EventIndex>> = FxHashMap::default();
        let mut writes: FxHashMap<Variable, Vec<EventIndex>> = FxHashMap::default();
        for (index, event) in trace.indexed_events().filter(|(_, event)| event.kind.is_access()) {
            by_hook.entry(trace.location(event.location).address).or_default().push(index);
            if history.writes(index) {
                writes.entry(history.variable(index)).or_default().push(index);
            }
        }
        Walk {
            code,
            history,
            threads,
            by_hook,
            writes,
            deciding: FxHashSet::default(),
            open: code.first.iter().copied().collect(),
            followed_variables: FxHashSet::default(),
            followed_stores: FxHashSet::default(),
        }
    }

    fn hook(&self, event: EventIndex) -> u64 {
        self.history.trace().location(self.history.event(event).location).address
    }

    fn decides(&self, event: EventIndex) -> bool {
        self.deciding.contains(&self.hook(event))
    }

    fn follow(&mut self) {
        while let Some(source) = self.open.pop() {
            if self.deciding.insert(source.hook) {
                match self.by_hook.get(&source.hook) {
                    Some(_) => self.follow_events(source.hook),
                    None => self.follow_code(source),
                }
            }
        }
    }

    /// The load reads what the run wrote to these variables.
    fn follow_events(&mut self, hook: u64) {
        let reads = self.by_hook.get(&hook).into_iter().flatten();
        let variables: FxHashSet<Variable> = reads.map(|&read| self.history.variable(read)).collect();
        for variable in variables {
            if self.followed_variables.insert(variable) {
                let writes = self.writes.get(&variable).into_iter().flatten();
                let stores: FxHashSet<u64> = writes.map(|&write| self.hook(write)).collect();
                stores.into_iter().for_each(|store| self.follow_store(store));
            }
        }
    }

    /// The load reads memory that only its thread uses.
    fn follow_code(&mut self, load: Source) {
        let threads = |function: u64| self.threads.get(&function).copied().unwrap_or_default();
        let may_be_it = |store: &Store| {
            threads(load.function) & threads(store.function) != 0
                && match (load.fixed, store.fixed) {
                    (Some(read), Some(written)) => read == written,
                    (Some(_), None) => !self.code.branches_only,
                    (None, _) => true,
                }
        };
        let unseen = self.code.stores.iter().filter(|(hook, _)| !self.by_hook.contains_key(hook));
        let stores: Vec<u64> = unseen.filter(|(_, store)| may_be_it(store)).map(|(&hook, _)| hook).collect();
        stores.into_iter().for_each(|store| self.follow_store(store));
    }

    /// What is stored there decides. A store that is a read as well, such as an atomic addition, stores what it has read.
    fn follow_store(&mut self, hook: u64) {
        if !self.followed_stores.insert(hook) {
            return;
        }
        let events = self.by_hook.get(&hook).into_iter().flatten();
        if events.into_iter().any(|&event| self.history.event(event).kind.is_read()) {
            self.deciding.insert(hook);
            self.follow_events(hook);
        }
        self.open.extend(self.code.stores.get(&hook).into_iter().flat_map(|store| &store.loads));
    }
}
