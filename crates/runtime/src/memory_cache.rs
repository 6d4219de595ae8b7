//! Code objects in this process's memory; the least recently used are dropped
//! first.

use std::sync::Mutex;

use gfxpack_model::KernelKey;
use hashlink::LruCache;

use crate::lookup::CodeObject;
use crate::mutex::lock;

/// Code objects up to a total size.
pub(crate) struct Memory {
    limit_bytes: u64,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    objects: LruCache<KernelKey, CodeObject>,
    bytes: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { objects: LruCache::new_unbounded(), bytes: 0 }
    }
}

impl Memory {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, state: Mutex::default() }
    }

    /// A copy for a child of the process; empty if a thread of the parent was
    /// changing it during the fork.
    pub(crate) fn inherited(&self) -> Self {
        let state = self.state.try_lock().map(|state| state.clone()).unwrap_or_default();
        Self { limit_bytes: self.limit_bytes, state: Mutex::new(state) }
    }

    pub(crate) fn get(&self, key: &KernelKey) -> Option<CodeObject> {
        lock(&self.state).objects.get(key).cloned()
    }

    /// Keeps a code object, unless it alone exceeds the limit.
    pub(crate) fn put(&self, key: &KernelKey, code_object: &CodeObject) {
        let size = code_object.len() as u64;
        if size > self.limit_bytes {
            return;
        }
        let state = &mut *lock(&self.state);
        let mut gone = state.objects.insert(key.clone(), code_object.clone());
        state.bytes += size;
        loop {
            state.bytes -= gone.map_or(0, |gone| gone.len() as u64);
            if state.bytes <= self.limit_bytes {
                break;
            }
            gone = state.objects.remove_lru().map(|(_, oldest)| oldest);
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
    fn the_least_recently_used_object_is_dropped_first() {
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
