//! A small durable table for other parts: exports, the state of replication, persistent reservations.

use super::{Doing, Pool, PoolError};
use bytes::Bytes;
use std::rc::Rc;

/// Limit of one call, keys and values together.
const MAX_BYTES: usize = 256 << 10;

impl Pool {
    /// Looks up a value.
    pub fn setting(&self, key: &str) -> Option<Bytes> {
        self.core.map.borrow().settings().get(key).cloned()
    }

    /// All keys that begin with `prefix`, in order.
    pub fn setting_keys(&self, prefix: &str) -> Vec<String> {
        let map = self.core.map.borrow();
        let from = map.settings().range(prefix.to_owned()..);
        from.map(|(key, _)| key).take_while(|key| key.starts_with(prefix)).cloned().collect()
    }

    /// Writes a value, or removes it.
    pub fn put_setting(&self, key: &str, value: Option<Bytes>) -> Doing<()> {
        self.put_settings(vec![(key.to_owned(), value)])
    }

    /// Writes and removes several values: all of them or none. Errors: more than 256 KiB in one call.
    pub fn put_settings(&self, settings: Vec<(String, Option<Bytes>)>) -> Doing<()> {
        let core = Rc::clone(&self.core);
        self.core.runtime.start(async move {
            let values = || settings.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
            let len_bytes = values().map(|(key, value)| key.len() + value.len()).sum();
            if len_bytes > MAX_BYTES {
                return Err(PoolError::SettingsTooLong { len_bytes, max_bytes: MAX_BYTES });
            }
            if values().next().is_some() {
                core.check_room()?;
            }
            core.check()?;
            {
                let mut map = core.map.borrow_mut();
                for (key, value) in settings {
                    map.put_setting(&key, value);
                }
            }
            Ok(core.commit().await?)
        })
    }
}
