//! The restore: each used cluster, with the backup that wrote it last.

use super::{BackupIo, BackupLoad, BackupOp, clusters::ClusterRuns, clusters::Common, pieces};
use std::{iter::Peekable, ops::Range};

impl BackupLoad {
    /// The restore after the full backup and this many incremental ones. All bytes of a read are of one backup.
    pub fn restore(&self, incrementals: u32) -> impl Iterator<Item = BackupIo> {
        let transfer_bytes = self.spec.transfer_bytes;
        let mut newest = Newest::new(self, incrementals);
        self.used()
            .flat_map(move |run| newest.split(run))
            .flat_map(move |(run, backup)| pieces(run, transfer_bytes).map(move |piece| (piece, backup)))
            .flat_map(|((offset, bytes), backup)| {
                [BackupOp::ReadImage, BackupOp::WriteTarget].map(|op| BackupIo { op, offset, bytes, backup })
            })
            .chain([BackupIo::flush(BackupOp::FlushTarget)])
    }
}

type Changes = Peekable<Common<ClusterRuns, ClusterRuns>>;

/// The maps of all incremental backups, read side by side.
struct Newest(Vec<(u32, Changes)>);

impl Newest {
    fn new(load: &BackupLoad, incrementals: u32) -> Self {
        let number = BackupLoad::number;
        Self((0..incrementals).map(|at| (number(at), load.changed(number(at)).peekable())).collect())
    }

    /// Parts of a run, each with the backup that wrote it last. The runs of all calls ascend.
    fn split(&mut self, run: Range<u64>) -> Vec<(Range<u64>, u32)> {
        let (mut parts, mut at) = (Vec::new(), run.start);
        while at < run.end {
            let (mut newest, mut end) = (1, run.end);
            for (backup, changes) in &mut self.0 {
                while changes.next_if(|changed| changed.end <= at).is_some() {}
                let Some(changed) = changes.peek() else { continue };
                if changed.start <= at {
                    newest = *backup;
                    end = end.min(changed.end);
                } else {
                    end = end.min(changed.start);
                }
            }
            parts.push((at..end, newest));
            at = end;
        }
        parts
    }
}
