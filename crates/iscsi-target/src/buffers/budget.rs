//! How much one connection may use of a memory that many connections share.
//!
//! The limit depends on the free memory (dynamic thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for
//! shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998): a connection may use a quarter of
//! the free memory. A single connection gets a fifth of all memory. n connections with high demand leave 4 / (n + 4) of
//! it free for later ones, which get a quarter of that each. A connection that uses no memory may take one large
//! command as long as a quarter of all memory stays free, so that commands above the limit are served too.

/// A connection may use the free memory divided by this.
const FREE_PER_SHARE: u64 = 4;

/// The memory.
#[derive(Debug)]
pub(crate) struct Budget {
    limit_bytes: u64,
    used_bytes: u64,
}

/// The memory that one connection uses.
#[derive(Debug, Default)]
pub(crate) struct Share(u64);

impl Share {
    pub(crate) fn bytes(&self) -> u64 {
        self.0
    }
}

impl Budget {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: 0 }
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// The current limit of a connection.
    pub(crate) fn share_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes) / FREE_PER_SHARE
    }

    /// Whether a connection may take this many more bytes.
    pub(crate) fn allows(&self, share: &Share, bytes: u64) -> bool {
        let large_first = || share.0 == 0 && self.used_bytes + bytes <= self.limit_bytes / 4 * 3;
        share.0 + bytes <= self.share_bytes() || large_first()
    }

    pub(crate) fn take(&mut self, share: &mut Share, bytes: u64) {
        share.0 += bytes;
        self.used_bytes += bytes;
    }

    pub(crate) fn give_back(&mut self, share: &mut Share, bytes: u64) {
        debug_assert!(bytes <= share.0 && bytes <= self.used_bytes, "no more comes back than was taken");
        share.0 -= bytes;
        self.used_bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Share};

    /// Takes pieces of `piece` bytes until no more are allowed.
    fn fill(budget: &mut Budget, piece: u64) -> Share {
        let mut share = Share::default();
        while budget.allows(&share, piece) {
            budget.take(&mut share, piece);
        }
        share
    }

    #[test]
    fn greedy_connections_leave_others_their_part() {
        for greedy in [1, 16, 200] {
            let mut budget = Budget::new(256 << 20);
            let mut shares: Vec<_> = (0..greedy).map(|_| Share::default()).collect();
            // All grow at the same time until none of them may grow.
            while shares.iter().any(|share| budget.allows(share, 4096)) {
                for share in &mut shares {
                    if budget.allows(share, 4096) {
                        budget.take(share, 4096);
                    }
                }
            }
            let free = budget.limit_bytes - budget.used_bytes;
            let expected = budget.limit_bytes * 4 / (greedy + 4);
            assert!(
                free.abs_diff(expected) <= expected / 50 + greedy * 4096,
                "{greedy}: {free} of {expected}"
            );
            assert!(fill(&mut budget, 4096).bytes() >= free / 6, "one more gets its part");
        }
    }

    #[test]
    fn one_alone_holds_a_fifth() {
        let mut budget = Budget::new(100 << 20);
        assert!(fill(&mut budget, 4096).bytes().abs_diff(20 << 20) < 8192);
    }

    #[test]
    fn a_command_beyond_the_limit_is_served_while_a_quarter_stays_free() {
        let mut budget = Budget::new(32 << 20);
        let mut first = Share::default();
        assert!(budget.allows(&first, 16 << 20), "it holds nothing");
        budget.take(&mut first, 16 << 20);
        assert!(!budget.allows(&first, 4096), "it holds more than its part");
        assert!(budget.allows(&Share::default(), 8 << 20));
        assert!(!budget.allows(&Share::default(), 12 << 20), "less than a quarter would be free");
        budget.give_back(&mut first, 16 << 20);
        assert_eq!((first.bytes(), budget.used_bytes()), (0, 0));
    }
}
