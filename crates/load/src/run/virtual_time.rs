//! Starting a run in virtual time.

use super::{Merging, Run, WAITING_INTERVALS, merge::Merger};
use crate::{
    error::RunError,
    facts::{Facts, VolumeFacts},
    plan::RunPlan,
    record::message::WorkerMessage,
    schedule::RunSchedule,
    spec::RunSpec,
    virtual_time::{self, ArrayReports, MakeVirtualArray},
    worker::{Hooks, ReadyWorker, WorkerSetup, control::Control},
};
use linerate_io::system::HostCpu;
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
};

impl Run {
    /// Starts a run in virtual time on the volumes that `make` makes; see [`MakeVirtualArray`]. It runs as fast as this
    /// machine computes it and the caller fetches its intervals. Its facts name the driver `virtual`.
    pub fn in_virtual_time(spec: RunSpec, make: MakeVirtualArray) -> Result<Self, RunError> {
        spec.validate()?;
        let spec = Arc::new(virtual_time::adapted(spec)?);
        let plan = Arc::new(RunPlan::new(&spec, 1));
        let schedule = RunSchedule::new(spec.warmup_s, spec.elapsed_s, spec.interval_s);
        let control = Arc::new(Control::new(&plan, schedule, spec.limits));
        let reports = Arc::new(ArrayReports::default());
        let (sender, messages) = mpsc::sync_channel(WAITING_INTERVALS);
        let (give_back, returned) = mpsc::channel();
        let (report, ready) = mpsc::channel();
        let (here, gone) = mpsc::channel();
        let setup = WorkerSetup {
            spec: Arc::clone(&spec),
            plan: Arc::clone(&plan),
            control: Arc::clone(&control),
            index: 0,
            hooks: Hooks::default(),
            virtual_time: None,
            sender,
            returned,
        };
        let kept = Arc::clone(&reports);
        let named = thread::Builder::new().name("load-virtual".into()).spawn(move || {
            let _here: mpsc::Sender<()> = here;
            virtual_time::work(setup, make, &kept, &report);
        });
        let thread = named.map_err(|error| RunError::Host(format!("cannot start a thread: {error}")))?;
        let ready =
            ready.recv().map_err(|_| RunError::Internal("it ended while it made the array".into()))??;
        let facts = facts_of(&spec, ready);
        let mut merger = Merger::new(&plan, schedule, vec![give_back], 0.0, HostCpu::default());
        // The host's CPU has no part in it.
        merger.take(WorkerMessage::Host { index: 0, cpu: HostCpu::default(), last: true });
        let merging = Merging { merger, messages, threads: vec![thread], stay: Vec::new(), gone };
        Ok(Self { facts, control, merging: Mutex::new(merging), reports: Some(reports) })
    }

    /// The report of the array of a run in virtual time, as JSON: at the end of a fetched interval, or (`None`) at the
    /// start of the run. Fetch reports in order: earlier ones are dropped.
    pub fn report(&self, index: Option<u32>) -> Option<String> {
        let at = index.map_or(0, |index| self.control.schedule.cut(index));
        self.reports.as_ref().and_then(|reports| reports.take(at))
    }
}

fn facts_of(spec: &RunSpec, ready: ReadyWorker) -> Facts {
    let mut facts = Facts { driver: ready.driver.into(), workers: 1, ..ready.facts };
    let mut volumes = vec![VolumeFacts::default(); spec.volumes.len()];
    for (index, volume) in ready.indices.into_iter().zip(facts.volumes) {
        volumes[index as usize] = volume;
    }
    facts.volumes = volumes;
    facts
}

#[cfg(test)]
mod tests {
    use super::Run;
    use crate::{
        record::{Interval, RunOutcome},
        spec::RunSpec,
        virtual_time::{MakeVirtualArray, VirtualArray, VirtualVolume},
    };
    use linerate_io::system::now_ns;
    use linerate_storage::disk::{Disk, ModelledDisk, SparseDisk, modelled::drives::drive};
    use std::{rc::Rc, time::Duration};

    fn spec(elapsed_s: f64, rest: &str) -> RunSpec {
        let text = format!(
            r#"{{"version": 1, "elapsed_s": {elapsed_s}, "warmup_s": 10, "interval_s": 10, "seed": 7 {rest},
            "volumes": [{{"name": "v", "url": "array:disk", "outstanding": 4}}],
            "streams": [{{"name": "s", "volumes": ["v"], "read_percent": 70,
                          "sizes": {{"kind": "mix", "parts": [[8192, 100]]}}}}]}}"#
        );
        RunSpec::from_json(&text).unwrap()
    }

    /// One 10k drive.
    fn virtual_array() -> MakeVirtualArray {
        Box::new(|runtime| {
            let inner = Rc::new(SparseDisk::new("d0", 64 << 30, 512));
            let disk = Rc::new(ModelledDisk::new(runtime, drive("sas_10k_2_5").unwrap(), inner));
            let name = "disk".to_owned();
            let volumes = vec![VirtualVolume { name, disk: Rc::clone(&disk) as _, block_bytes: 512 }];
            let report = Rc::new(move || serde_json::json!({"reads": disk.stats().reads}).to_string());
            Box::pin(std::future::ready(Ok(VirtualArray { volumes, report })))
        })
    }

    fn reads(run: &Run, index: Option<u32>) -> u64 {
        let report: serde_json::Value = serde_json::from_str(&run.report(index).unwrap()).unwrap();
        report["reads"].as_u64().unwrap()
    }

    fn intervals(run: &Run) -> Vec<(Interval, u64)> {
        let mut before = reads(run, None);
        let mut all = Vec::new();
        while !run.finished() {
            if let Some(interval) = run.next_interval(Duration::from_secs(10)) {
                let counted = reads(run, Some(interval.index));
                all.push((interval, counted - before));
                before = counted;
            }
        }
        all
    }

    #[test]
    fn twenty_minutes_pass_in_seconds_and_always_alike() {
        let began = now_ns();
        let totals = [(); 2].map(|()| {
            let run = Run::in_virtual_time(spec(1200.0, ""), virtual_array()).unwrap();
            assert_eq!(
                (run.facts().driver.as_str(), run.facts().volumes[0].kind.as_str()),
                ("virtual", "array")
            );
            let all = intervals(&run);
            assert_eq!(all.len(), 121);
            for (interval, counted) in &all {
                let ios = interval.ios();
                assert!((1500..3500).contains(&ios), "{ios} in interval {}", interval.index);
                let rows = interval.rows.iter().filter(|row| row.op == crate::record::Op::Read);
                let done: u64 = rows.map(|row| row.ios).sum();
                // Only one of the two counts I/Os that are in flight at the ends of an interval.
                assert!(done.abs_diff(*counted) <= 4, "{done} reads, the array counted {counted}");
            }
            let summary = run.finish();
            assert!(matches!(summary.outcome, RunOutcome::Completed));
            (summary.total.ios(), summary.total.rows[0].service_sum_ns)
        });
        assert_eq!(totals[0], totals[1]);
        assert!(now_ns() - began < 60_000_000_000, "40 minutes took {} ns", now_ns() - began);
    }

    #[test]
    fn written_data_are_checked_there_too_and_open_loops_keep_their_rate() {
        let rest = r#", "verify": "on", "arrival": {"kind": "open", "process": "poisson", "rate_iops": 100}"#;
        let run = Run::in_virtual_time(spec(60.0, rest), virtual_array()).unwrap();
        let summary = run.finish();
        assert!(matches!(summary.outcome, RunOutcome::Completed), "{:?}", summary.outcome);
        assert!((5500..6500).contains(&summary.total.ios()), "{}", summary.total.ios());
    }

    #[test]
    fn only_the_arrays_volumes_can_be_used() {
        let mut other = spec(60.0, "");
        other.volumes[0].url = "array:none".into();
        let error = Run::in_virtual_time(other.clone(), virtual_array()).unwrap_err();
        assert!(error.to_string().contains("no such volume"), "{error}");
        let error = Run::start(other.clone()).unwrap_err();
        assert!(error.to_string().contains("virtual time only"), "{error}");
        other.volumes[0].url = "null:1048576".into();
        let error = Run::in_virtual_time(other, virtual_array()).unwrap_err();
        assert!(error.to_string().contains("array:NAME"), "{error}");
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        let run = Run::in_virtual_time(spec(1e6, ""), virtual_array()).unwrap();
        assert!(run.next_interval(Duration::from_secs(10)).is_some());
        run.stop();
        assert!(matches!(run.finish().outcome, RunOutcome::Stopped));
    }
}
