//! Code objects in this process's memory, the least recently used going first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use gfxpack_model::KernelKey;

use crate::code_object::CodeObject;
use crate::mutex::lock;

/// Code objects up to a number of bytes.
pub(crate) struct Memory {
    limit_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    objects: HashMap<KernelKey, (u64, CodeObject)>,
    /// Keys by when they were used.
    order: BTreeMap<u64, KernelKey>,
    uses: u64,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, state: Mutex::default() }
    }

    /// The same again, for a child of the process; empty where a thread of the
    /// parent was in the middle of a change.
    pub(crate) fn inherited(&self) -> Self {
        let state = self.state.try_lock().map(|state| state.clone()).unwrap_or_default();
        Self { limit_bytes: self.limit_bytes, state: Mutex::new(state) }
    }

    pub(crate) fn get(&self, key: &KernelKey) -> Option<CodeObject> {
        let mut state = lock(&self.state);
        let (used, code_object) = state.objects.get(key)?.clone();
        let now = state.tick();
        state.objects.insert(key.clone(), (now, code_object.clone()));
        state.order.remove(&used);
        state.order.insert(now, key.clone());
        Some(code_object)
    }

    /// Keeps a code object, unless it alone is more than the limit.
    pub(crate) fn put(&self, key: &KernelKey, code_object: &CodeObject) {
        let size = code_object.len() as u64;
        if size > self.limit_bytes {
            return;
        }
        let mut state = lock(&self.state);
        state.remove(key);
        while state.bytes + size > self.limit_bytes {
            let Some(oldest) = state.order.first_key_value().map(|(_, key)| key.clone()) else {
                break;
            };
            state.remove(&oldest);
        }
        let now = state.tick();
        state.bytes += size;
        state.order.insert(now, key.clone());
        state.objects.insert(key.clone(), (now, code_object.clone()));
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn remove(&mut self, key: &KernelKey) {
        if let Some((used, code_object)) = self.objects.remove(key) {
            self.order.remove(&used);
            self.bytes -= code_object.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(args: &str) -> KernelKey {
        KernelKey { kernel_name: "a.s.o".to_owned(), kernel_args: args.to_owned() }
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let memory = Memory::new(100);
        let object = |size: usize| CodeObject::from(vec![1; size]);
        for name in ["a", "b"] {
            memory.put(&key(name), &object(40));
        }
        assert!(memory.get(&key("a")).is_some());
        memory.put(&key("c"), &object(40));
        let kept = ["a", "b", "c"].map(|name| memory.get(&key(name)).is_some());
        assert_eq!(kept, [true, false, true]);
        memory.put(&key("a"), &object(10));
        memory.put(&key("d"), &object(50));
        assert_eq!(memory.get(&key("a")).unwrap().len(), 10, "replaced, and counted once");
        assert!(memory.get(&key("c")).is_some() && memory.get(&key("d")).is_some());
        memory.put(&key("e"), &object(101));
        assert!(memory.get(&key("e")).is_none(), "it alone is too large");
        assert!(memory.get(&key("d")).is_some(), "and displaces nothing");
    }
}
