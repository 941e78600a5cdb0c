//! What the queue of a volume does between I/Os: it flushes the volume after a number of writes (fio's `fsync=n`), and
//! opens it again after a number of I/Os (Iometer's transactions per connection).

use crate::{
    record::Op,
    spec::{FlushSpec, VolumeSpec},
};

/// What comes before the next I/O of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// Nothing.
    None,
    /// Until an I/O or a flush completes.
    Wait,
    /// A flush, in the place of an I/O.
    Flush,
    /// The volume is closed and opened again.
    Reopen,
}

/// The flushes and openings of a volume that has any.
#[derive(Debug)]
pub(crate) struct Upkeep {
    flush: Option<FlushSpec>,
    /// Writes since the last flush.
    writes: u32,
    is_flushing: bool,
    reopen_after_ios: Option<u32>,
    /// I/Os since it was opened.
    ios: u32,
}

impl Upkeep {
    /// That of a volume; none for most.
    pub(super) fn of(volume: &VolumeSpec) -> Option<Box<Self>> {
        let (flush, reopen_after_ios) = (volume.flush, volume.reopen_after_ios);
        let has_any = flush.is_some() || reopen_after_ios.is_some();
        has_any.then(|| Box::new(Self { flush, writes: 0, is_flushing: false, reopen_after_ios, ios: 0 }))
    }

    /// `is_idle`: no I/O of the volume is in flight.
    pub(super) fn next(&self, is_idle: bool) -> Errand {
        if let Some(flush) = self.flush {
            if flush.blocks && self.is_flushing {
                return Errand::Wait;
            }
            if self.writes >= flush.after_writes {
                return Errand::Flush;
            }
        }
        match self.reopen_after_ios {
            Some(after) if self.ios >= after => {
                if is_idle {
                    Errand::Reopen
                } else {
                    Errand::Wait
                }
            }
            _ => Errand::None,
        }
    }

    /// A flush starts.
    pub(super) fn flush_starts(&mut self) {
        (self.writes, self.is_flushing) = (0, true);
    }

    /// It has ended.
    pub(super) fn flush_ended(&mut self) {
        self.is_flushing = false;
    }

    /// The volume is opened again.
    pub(super) fn reopened(&mut self) {
        self.ios = 0;
    }

    /// An I/O starts.
    pub(super) fn started(&mut self, op: Op) {
        self.ios += u32::from(self.reopen_after_ios.is_some());
        self.writes += u32::from(self.flush.is_some() && op == Op::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::{Errand, Upkeep};
    use crate::{record::Op, spec::VolumeSpec};

    fn upkeep(json: &str) -> Upkeep {
        let text = format!(r#"{{"name": "v", "url": "null:4096", {json}}}"#);
        *Upkeep::of(&serde_json::from_str::<VolumeSpec>(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_volume_is_opened_again_once_its_ios_have_ended() {
        let mut one = upkeep(r#""reopen_after_ios": 2"#);
        one.started(Op::Read);
        assert_eq!(one.next(false), Errand::None);
        one.started(Op::Write);
        assert_eq!((one.next(false), one.next(true)), (Errand::Wait, Errand::Reopen));
        one.ios = 0;
        assert_eq!(one.next(true), Errand::None);
    }

    #[test]
    fn reads_do_not_bring_a_flush_nearer() {
        let mut one = upkeep(r#""flush": {"after_writes": 2}"#);
        for op in [Op::Write, Op::Read, Op::Read] {
            one.started(op);
        }
        assert_eq!(one.next(false), Errand::None);
        one.started(Op::Write);
        assert_eq!(one.next(false), Errand::Flush);
    }

    #[test]
    fn ios_go_on_during_a_flush_that_does_not_block() {
        for (blocks, expected) in
            [(true, [Errand::Wait, Errand::Wait]), (false, [Errand::None, Errand::Flush])]
        {
            let mut one = upkeep(&format!(r#""flush": {{"after_writes": 1, "blocks": {blocks}}}"#));
            one.is_flushing = true;
            let before = one.next(false);
            one.started(Op::Write);
            assert_eq!([before, one.next(false)], expected);
        }
    }
}
