//! The distribution of volumes over workers, and the flows (one stream on one volume) with their weights and rates.
//! Computed from the specification alone, before anything is opened.
//!
//! A worker's thread is in one network namespace, so the volumes of each namespace have their own workers.

use crate::{
    spec::{ArrivalProcess, ArrivalSpec, RunSpec, VolumeSpec},
    stream::share::resolve_shares,
};

/// The plan of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    pub(crate) workers: usize,
    /// Volumes by worker, ascending.
    volumes: Vec<Vec<u32>>,
    /// In the order of streams, then of their volumes.
    pub(crate) flows: Vec<FlowPlan>,
    /// Share of each volume in the closed-loop I/Os.
    pub(crate) volume_weights: Vec<f64>,
    /// Share of each closed-loop stream; 0 for others.
    pub(crate) stream_weights: Vec<f64>,
    /// Flows that stop at their end.
    pub(crate) to_end: usize,
}

/// One stream on one volume.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlowPlan {
    pub(crate) stream: u32,
    pub(crate) volume: u32,
    /// Share of all closed-loop I/Os, in percent.
    pub(crate) weight: f64,
    /// Open loop: process, rate, and phase of the first arrival within its period.
    pub(crate) arrival: Option<(ArrivalProcess, f64, f64)>,
    /// Smaller is served first.
    pub(crate) priority: u32,
}

impl RunPlan {
    /// For a valid specification on a machine with `cpus` usable CPUs.
    pub(crate) fn new(spec: &RunSpec, cpus: usize) -> Self {
        let volumes = deal(&spec.volumes, if spec.workers == 0 { cpus } else { spec.workers });
        let wishes: Vec<(Option<f64>, bool)> =
            spec.streams.iter().map(|stream| (stream.share_percent, stream.rate_iops.is_some())).collect();
        let shares = resolve_shares(&wishes);
        let total: usize = spec.streams.iter().map(|stream| stream.volumes.len()).sum();
        let mut flows: Vec<FlowPlan> = Vec::with_capacity(total);
        for (nth, stream) in spec.streams.iter().enumerate() {
            let part = 1.0 / stream.volumes.len().max(1) as f64;
            let share = shares[nth].unwrap_or(0.0);
            for name in &stream.volumes {
                let Some(volume) = spec.volumes.iter().position(|volume| volume.name == *name) else {
                    continue;
                };
                let phase = (flows.len() as f64 + 0.5) / total as f64;
                let arrival = match (stream.rate_iops, spec.arrival) {
                    (Some(rate), ArrivalSpec::Open { process, .. }) => Some((process, rate * part, phase)),
                    // vdbench's default process, for a stream with a rate beside streams without one.
                    (Some(rate), ArrivalSpec::Closed) => Some((ArrivalProcess::Poisson, rate * part, phase)),
                    (None, ArrivalSpec::Open { process, rate_iops }) => {
                        Some((process, rate_iops * share / 100.0 * part, phase))
                    }
                    (None, ArrivalSpec::Closed) => None,
                };
                flows.push(FlowPlan {
                    stream: nth as u32,
                    volume: volume as u32,
                    weight: if arrival.is_none() { share * part } else { 0.0 },
                    arrival,
                    priority: stream.priority.unwrap_or(u32::MAX),
                });
            }
        }
        let mut volume_weights = vec![0.0; spec.volumes.len()];
        let mut stream_weights = vec![0.0; spec.streams.len()];
        for flow in &flows {
            volume_weights[flow.volume as usize] += flow.weight;
            stream_weights[flow.stream as usize] += flow.weight;
        }
        let to_end = flows.iter().filter(|flow| spec.streams[flow.stream as usize].stops()).count();
        Self { workers: volumes.len(), volumes, flows, volume_weights, stream_weights, to_end }
    }

    /// Closed-loop flows of each stream.
    pub(crate) fn live_flows(&self) -> Vec<usize> {
        let mut live = vec![0; self.stream_weights.len()];
        self.flows
            .iter()
            .filter(|flow| flow.arrival.is_none())
            .for_each(|flow| live[flow.stream as usize] += 1);
        live
    }

    /// The flows of a worker in its own order: by volume, closed-loop flows first.
    pub(crate) fn flows_of(&self, worker: usize) -> Vec<FlowPlan> {
        let mut flows: Vec<FlowPlan> = self
            .flows
            .iter()
            .copied()
            .filter(|flow| self.volumes[worker].binary_search(&flow.volume).is_ok())
            .collect();
        flows.sort_by_key(|flow| (flow.volume, flow.arrival.is_some(), flow.stream));
        flows
    }

    /// The volumes of a worker, in its own order.
    pub(crate) fn volumes_of(&self, worker: usize) -> impl Iterator<Item = u32> {
        self.volumes[worker].iter().copied()
    }

    /// The network namespace of a worker.
    pub(crate) fn netns_of<'a>(&self, worker: usize, spec: &'a RunSpec) -> Option<&'a str> {
        self.volumes[worker].first().and_then(|&volume| spec.volumes[volume as usize].netns.as_deref())
    }
}

/// Distributes volumes over workers: in turn inside each network namespace, with workers in proportion to its volumes.
/// Those of a shared queue stay together.
fn deal(volumes: &[VolumeSpec], workers: usize) -> Vec<Vec<u32>> {
    let mut groups: Vec<(&Option<String>, Vec<Vec<u32>>)> = Vec::new();
    for (index, volume) in volumes.iter().enumerate() {
        let at = groups.iter().position(|(netns, _)| **netns == volume.netns).unwrap_or_else(|| {
            groups.push((&volume.netns, Vec::new()));
            groups.len() - 1
        });
        let group = &mut groups[at].1;
        let queue = |of: &VolumeSpec| of.queue.as_ref().map(|queue| queue.name.clone());
        let is_mate = |unit: &&mut Vec<u32>| queue(&volumes[unit[0] as usize]) == queue(volume);
        match group.iter_mut().find(|unit| volume.queue.is_some() && is_mate(unit)) {
            Some(unit) => unit.push(index as u32),
            None => group.push(vec![index as u32]),
        }
    }
    let mut shares = vec![1; groups.len()];
    let units: usize = groups.iter().map(|(_, group)| group.len()).sum();
    for _ in groups.len()..workers.min(units) {
        let load = |at: usize| groups[at].1.len() as f64 / shares[at] as f64;
        // The first of the most loaded ones.
        if let Some(most) = (0..groups.len()).rev().max_by(|&a, &b| load(a).total_cmp(&load(b))) {
            shares[most] += 1;
        }
    }
    let dealt = |((_, group), share): (&(_, Vec<Vec<u32>>), &usize)| {
        let of_worker = |nth| {
            let mut own: Vec<u32> = group.iter().skip(nth).step_by(*share).flatten().copied().collect();
            own.sort_unstable();
            own
        };
        (0..*share).map(of_worker).collect::<Vec<_>>()
    };
    groups.iter().zip(&shares).flat_map(dealt).collect()
}

#[cfg(test)]
mod tests {
    use super::RunPlan;
    use crate::spec::{RunSpec, VolumeSpec};
    use serde_json::json;

    fn plan(arrival: &str) -> RunPlan {
        let sizes = r#""sizes": {"kind": "mix", "parts": [[4096, 100]]}"#;
        let text = format!(
            r#"{{"version": 1, "elapsed_s": 1, "arrival": {arrival},
            "volumes": [{{"name": "a", "url": "null:1048576"}}, {{"name": "b", "url": "null:1048576"}},
                        {{"name": "c", "url": "null:1048576"}}],
            "streams": [{{"name": "x", "volumes": ["a", "b"], "share_percent": 67, {sizes}}},
                        {{"name": "y", "volumes": ["a", "b", "c"], {sizes}}},
                        {{"name": "z", "volumes": ["c"], "rate_iops": 50, "priority": 1, {sizes}}}]}}"#
        );
        RunPlan::new(&serde_json::from_str::<RunSpec>(&text).unwrap(), 2)
    }

    #[test]
    fn every_namespace_has_workers_of_its_own() {
        let dealt = |namespaces: &[Option<&str>], workers: usize| {
            let volumes: Vec<_> = namespaces
                .iter()
                .enumerate()
                .map(|(at, netns)| json!({"name": format!("v{at}"), "url": "null:1048576", "netns": netns}))
                .collect();
            super::deal(&serde_json::from_value::<Vec<VolumeSpec>>(json!(volumes)).unwrap(), workers)
        };
        let (a, b) = (Some("/a"), Some("/b"));
        assert_eq!(dealt(&[None; 5], 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(dealt(&[None; 2], 8), [[0], [1]], "no worker without a volume");
        assert_eq!(dealt(&[a, b, a, None], 1), [vec![0, 2], vec![1], vec![3]], "never fewer than namespaces");
        assert_eq!(dealt(&[a, b, a, a], 3), [vec![0, 3], vec![2], vec![1]]);
        assert_eq!(dealt(&[a, a, b, b], 3), [vec![0], vec![1], vec![2, 3]]);
    }

    #[test]
    fn volumes_of_a_shared_queue_have_one_worker() {
        let volumes: Vec<_> = ["", "q", "", "q", "r", "q"]
            .iter()
            .enumerate()
            .map(|(at, queue)| {
                let queue = (!queue.is_empty()).then(|| json!({"name": queue}));
                json!({"name": format!("v{at}"), "url": "null:1048576", "queue": queue})
            })
            .collect();
        let volumes = serde_json::from_value::<Vec<VolumeSpec>>(json!(volumes)).unwrap();
        assert_eq!(super::deal(&volumes, 2), [vec![0, 2], vec![1, 3, 4, 5]]);
        assert_eq!(super::deal(&volumes, 8), [vec![0], vec![1, 3, 5], vec![2], vec![4]]);
    }

    #[test]
    fn a_closed_loop_divides_shares_over_volumes() {
        let plan = plan(r#"{"kind": "closed"}"#);
        assert_eq!(plan.workers, 2);
        assert_eq!(plan.volume_weights, [33.5 + 11.0, 33.5 + 11.0, 11.0]);
        assert_eq!(plan.stream_weights, [67.0, 33.0, 0.0]);
        assert_eq!(plan.flows[5].arrival.map(|arrival| arrival.1), Some(50.0));
        assert!(plan.flows[..5].iter().all(|flow| flow.arrival.is_none()));
    }

    #[test]
    fn an_open_loop_divides_its_rate_by_the_shares() {
        let plan = plan(r#"{"kind": "open", "process": "poisson", "rate_iops": 1000}"#);
        let rates: Vec<f64> =
            plan.flows.iter().filter_map(|flow| flow.arrival.map(|arrival| arrival.1)).collect();
        for (rate, expected) in rates.iter().zip([335.0, 335.0, 110.0, 110.0, 110.0, 50.0]) {
            assert!((rate - expected).abs() < 1e-6, "{rates:?}");
        }
        assert_eq!(plan.volume_weights, [0.0, 0.0, 0.0]);
    }
}
