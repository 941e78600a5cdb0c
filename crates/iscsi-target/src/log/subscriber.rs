//! Collects events from `tracing`.

use super::{Level, LogEvent, Shared};
use linerate_io::system;
use serde_json::{Map, Value};
use std::{
    fmt::{self, Write},
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tracing::{
    Metadata,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

/// Most characters of a message: it may contain bytes of a peer.
const MESSAGE_MAX: usize = 1024;
/// Most characters of a field.
const FIELD_MAX: usize = 512;

/// See the module text. Spans are not used here.
pub(super) struct Subscriber(Arc<Shared>);

impl Subscriber {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

fn level_of(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warning,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

impl tracing::Subscriber for Subscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && level_of(*metadata.level()) as u8 <= self.0.level.load(Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let filters = [
            LevelFilter::ERROR,
            LevelFilter::WARN,
            LevelFilter::INFO,
            LevelFilter::DEBUG,
            LevelFilter::TRACE,
        ];
        filters.get(usize::from(self.0.level.load(Relaxed))).copied()
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut seen = Seen::default();
        event.record(&mut seen);
        let Seen { mut fields, message } = seen;
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (kind, peer) = (text("event").unwrap_or_else(|| "notice".into()), text("peer"));
        let level = level_of(*event.metadata().level());
        self.0.report(LogEvent { time_s: system::unix_time_s(), level, event: kind, message, peer, fields });
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Seen {
    message: String,
    fields: Map<String, Value>,
}

impl Seen {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().into(), value.into());
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = short(value, MESSAGE_MAX);
        } else {
            self.set(field, short(value, FIELD_MAX));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, short(&format_args!("{value}"), FIELD_MAX));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}

/// A text that is cut after this many bytes.
struct Short {
    text: String,
    left: usize,
}

impl Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let fits = self.left.min(more.len());
        let end = (0..=fits).rev().find(|end| more.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&more[..end]);
        self.left -= end;
        if end < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

fn short(value: &dyn fmt::Debug, most: usize) -> String {
    let mut short = Short { text: String::new(), left: most };
    if write!(short, "{value:?}").is_err() {
        short.text.push_str("...");
    }
    short.text
}
