//! A set that closes leaves no work for the next start.

use super::{after_lost_caches, as_disks, config, crash_disks, create, run, write};
use linerate_storage::{Disk, Executor, raid::RaidLevel};
use std::{cell::Cell, rc::Rc};

#[test]
fn no_write_without_waiting_begins_while_a_set_closes() {
    for (level, members) in [(RaidLevel::Raid1, 2), (RaidLevel::Raid5, 3), (RaidLevel::Raid6, 4)] {
        let mut executor = Executor::new();
        let (drives, runtime, config) = (crash_disks(&executor, members), executor.runtime(), config(level));
        let set = create(&mut executor, &config, &as_disks(&drives));
        for drive in &drives {
            drive.set_quick_spans(u64::MAX);
        }
        // The flags of the first stripe are set.
        write(&mut executor, &set, 0, 4096, 1);
        assert!(set.write_nowait(0, &[2; 4096], false).is_some(), "{level}: not written");
        for drive in &drives {
            drive.set_delay(20_000, 2_000_000);
        }
        let (closing, is_closed) = (Rc::clone(&set), Rc::new(Cell::new(false)));
        let told = Rc::clone(&is_closed);
        runtime.spawn(async move {
            closing.close().await.unwrap();
            told.set(true);
        });
        let mut refused = 0;
        loop {
            let runtime = executor.runtime();
            run(&mut executor, async move { runtime.sleep(10_000).await });
            if is_closed.get() {
                break;
            }
            assert!(set.write_nowait(0, &[3; 4096], false).is_none(), "{level}: written");
            refused += 1;
        }
        assert!(refused > 1, "{level}: closed at once");
        let (_, again) = after_lost_caches(&config, &drives);
        assert_eq!(again.status().task, None, "{level}");
    }
}
