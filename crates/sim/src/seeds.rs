//! Many runs, each with its own seed, and the replay of a failed one.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Number of runs between two progress messages.
const PROGRESS_RUNS: u64 = 1000;

/// Runs `test` with seeds 0 to `runs` - 1. `LINERATE_SIM_RUNS` replaces the number of runs, `LINERATE_SIM_FROM` the
/// first seed (to continue a long proof), `LINERATE_SIM_SEED` replays one seed. If a run panics, its seed is printed;
/// many runs report their progress. Returns whether at least `runs` seeds ran: sums over all of them are meaningful only
/// then.
pub fn for_each_seed(runs: u64, mut test: impl FnMut(u64)) -> bool {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("LINERATE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => number("LINERATE_SIM_FROM").unwrap_or(0)..number("LINERATE_SIM_RUNS").unwrap_or(runs),
    };
    let is_full = seeds.end.saturating_sub(seeds.start) >= runs;
    let test_name = std::thread::current().name().unwrap_or("seeds").to_owned();
    for seed in seeds {
        if seed > 0 && seed % PROGRESS_RUNS == 0 {
            eprintln!("{test_name}: {seed} seeds passed");
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!(
                "seed {seed} failed; LINERATE_SIM_SEED={seed} replays it, and so does make sim SEED={seed}"
            );
            resume_unwind(panic);
        }
    }
    is_full
}
