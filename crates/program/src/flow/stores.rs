//! The places that store to variables with static storage, found by the addresses that hooks are given.

use std::collections::HashMap;

use iced_x86::Register;

use super::code::ModuleCode;
use super::straight;

/// Files with more functions than this are not gone through.
const MAX_FUNCTIONS: usize = 20_000;

/// For each address that the code names as a constant, the places that store there: the addresses that the hooks of
/// these stores return to. All are as linked.
#[derive(Debug, Default)]
pub(super) struct ConstantStores(HashMap<u64, Vec<u64>>);

impl ConstantStores {
    pub(super) fn of(module: &ModuleCode<'_>) -> ConstantStores {
        let graph = module.call_graph();
        let mut stores: HashMap<u64, Vec<u64>> = HashMap::new();
        if graph.functions().count() > MAX_FUNCTIONS {
            return ConstantStores::default();
        }
        for entry in graph.functions() {
            let is_store = |callee| module.callee_name(callee).is_some_and(announces_store);
            let hooks: Vec<u64> = graph
                .calls(entry)
                .iter()
                .filter(|site| is_store(&site.callee))
                .map(|site| site.return_address)
                .collect();
            let Some(flow) = module.flow(entry).filter(|_| !hooks.is_empty()) else { continue };
            let predecessors = flow.predecessors();
            for hook in hooks {
                let argument = flow
                    .block_of_call(hook)
                    .and_then(|block| straight::argument(&flow, &predecessors, block, Register::RDI));
                if let Some(address) = argument.and_then(|(value, _)| value.linear.as_constant()) {
                    stores.entry(address.cast_unsigned()).or_default().push(hook);
                }
            }
        }
        stores.values_mut().for_each(|hooks| hooks.sort_unstable());
        ConstantStores(stores)
    }

    pub(super) fn to(&self, address: u64) -> &[u64] {
        self.0.get(&address).map_or(&[], Vec::as_slice)
    }
}

/// The hook with this name announces an access, or makes one, that may change the memory at its first argument.
fn announces_store(hook: &str) -> bool {
    let Some(rest) = hook.strip_prefix("__tsan_") else { return false };
    match rest.strip_prefix("atomic") {
        Some(atomic) => !atomic.ends_with("_load") && !atomic.ends_with("_fence"),
        None => rest.contains("write"),
    }
}

#[cfg(test)]
mod tests {
    use super::announces_store;

    #[test]
    fn hooks_that_announce_a_store() {
        for hook in
            ["__tsan_write4", "__tsan_unaligned_write8", "__tsan_atomic32_store", "__tsan_atomic8_fetch_add"]
        {
            assert!(announces_store(hook), "{hook}");
        }
        for hook in [
            "__tsan_read4",
            "__tsan_atomic32_load",
            "__tsan_atomic_thread_fence",
            "write",
            "__tsan_func_entry",
        ] {
            assert!(!announces_store(hook), "{hook}");
        }
    }
}
