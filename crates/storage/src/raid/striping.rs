//! RAID 0 over groups: the position of a set's bytes.

/// Chunks of `unit` bytes go to the groups in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Striping {
    pub(super) groups: usize,
    pub(super) unit: u64,
}

/// A run of bytes in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StripedRun {
    pub(super) group: usize,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Striping {
    /// The extent at `offset`, up to the end of its chunk or `len`.
    pub(super) fn run(&self, offset: u64, len: u64) -> StripedRun {
        if self.groups == 1 {
            return StripedRun { group: 0, offset, len };
        }
        let (chunk, within) = (offset / self.unit, offset % self.unit);
        let groups = self.groups as u64;
        StripedRun {
            group: (chunk % groups) as usize,
            offset: chunk / groups * self.unit + within,
            len: len.min(self.unit - within),
        }
    }

    /// All runs of a range, in order.
    pub(super) fn runs(self, mut offset: u64, mut len: u64) -> impl Iterator<Item = StripedRun> {
        std::iter::from_fn(move || {
            let run = self.run(offset, len);
            offset += run.len;
            len -= run.len;
            (run.len > 0).then_some(run)
        })
    }

    /// One run per group of a range: consecutive chunks of a group are also consecutive on it.
    pub(super) fn joined(self, offset: u64, len: u64) -> Vec<StripedRun> {
        let mut joined: Vec<Option<StripedRun>> = vec![None; self.groups];
        for run in self.runs(offset, len) {
            match &mut joined[run.group] {
                Some(so_far) => so_far.len += run.len,
                none => *none = Some(run),
            }
        }
        joined.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_round() {
        let striping = Striping { groups: 3, unit: 100 };
        let runs: Vec<_> = striping.runs(250, 300).map(|run| (run.group, run.offset, run.len)).collect();
        assert_eq!(runs, [(2, 50, 50), (0, 100, 100), (1, 100, 100), (2, 100, 50)]);
        let joined: Vec<_> =
            striping.joined(250, 300).iter().map(|run| (run.group, run.offset, run.len)).collect();
        assert_eq!(joined, [(0, 100, 100), (1, 100, 100), (2, 50, 100)]);
        assert_eq!(
            Striping { groups: 1, unit: 100 }.run(250, 300),
            StripedRun { group: 0, offset: 250, len: 300 }
        );
    }
}
