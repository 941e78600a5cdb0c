//! What commands of diskspd ask for: a queue of several targets, and uneven random places.

use crate::common::{ios, null_volume, run_well, spec, stream};
use linerate_load::RunSpec;
use serde_json::{Value, json};

fn in_queue(name: &str, outstanding: u32, queue: &Value) -> Value {
    let mut volume = null_volume(name, outstanding);
    volume["queue"] = queue.clone();
    volume
}

#[test]
fn a_shared_queue_has_its_ios_in_flight_on_all_volumes_together() {
    let volumes = json!([
        in_queue("a", 6, &json!({"name": "q"})),
        in_queue("b", 6, &json!({"name": "q", "weight": 2})),
        in_queue("c", 6, &json!({"name": "q"})),
    ]);
    let streams = json!([stream("s", &["a", "b", "c"], &json!({"read_percent": 70}))]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({"workers": 3})));
    let share = |volume| ios(&total, None, Some(volume), None) as f64 / total.ios() as f64 * 100.0;
    for (volume, percent) in [(0, 25.0), (1, 50.0), (2, 25.0)] {
        assert!((share(volume) - percent).abs() < 2.0, "volume {volume}: {} %", share(volume));
    }
    assert!(total.outstanding_mean <= 6.01, "{} I/Os in flight", total.outstanding_mean);
}

#[test]
fn shared_queues_begin_and_end_at_their_own_times() {
    let volumes = json!([
        in_queue("a", 3, &json!({"name": "q"})),
        in_queue("b", 3, &json!({"name": "q"})),
        in_queue("c", 1, &json!({"name": "late"})),
        in_queue("d", 1, &json!({"name": "late"})),
    ]);
    let late = json!({"start_after_s": 0.5, "stop_after_s": 0.9});
    let streams = json!([
        stream("early", &["a", "b"], &json!({"stop_after_s": 0.3})),
        stream("c", &["c"], &late),
        stream("d", &["d"], &late),
    ]);
    let rest = json!({"elapsed_s": 60, "interval_s": 0.1, "workers": 1});
    let (intervals, total) = run_well(spec(&volumes, &streams, &rest));
    assert!((0.9..5.0).contains(&total.end_s), "it ends with its last queue: {}", total.end_s);
    for interval in &intervals {
        for (volumes, from, to, most) in [([0, 1], 0.0, 0.3, 3.01), ([2, 3], 0.5, 0.9, 1.01)] {
            let number: u64 = volumes.iter().map(|&one| ios(interval, None, Some(one), None)).sum();
            if interval.end_s <= from || interval.start_s >= to + 0.1 {
                assert_eq!(number, 0, "at {}", interval.start_s);
            } else if interval.start_s >= from && interval.end_s <= to {
                assert!(interval.outstanding_mean <= most, "{} in flight", interval.outstanding_mean);
            }
        }
    }
    for (one, other) in [(0, 1), (2, 3)] {
        let [one, other] = [one, other].map(|volume| ios(&total, None, Some(volume), None));
        assert!(one > 500 && other > 500 && one.abs_diff(other) * 10 < one + other, "{one} and {other}");
    }
}

#[test]
fn ios_of_a_shared_queue_fit_the_buffers_of_all_its_volumes() {
    let large = json!({"sizes": {"kind": "mix", "parts": [[262_144, 100]]}, "read_percent": 50});
    let streams =
        json!([stream("small", &["a"], &json!({"read_percent": 100})), stream("large", &["b"], &large)]);
    let queue = json!({"name": "q"});
    let volumes = json!([in_queue("a", 4, &queue), in_queue("b", 4, &queue), null_volume("own", 2)]);
    let streams = json!([streams[0], streams[1], stream("beside", &["own"], &json!({}))]);
    let (_, total) = run_well(spec(&volumes, &streams, &json!({"workers": 1})));
    for (volume, size) in [(0, 4096), (1, 262_144), (2, 4096)] {
        let rows: Vec<_> = total.rows.iter().filter(|row| row.volume == volume).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.bytes == row.ios * size), "volume {volume}");
        assert!(rows.iter().map(|row| row.ios).sum::<u64>() > 100, "volume {volume} has its turns");
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_key() {
    let refused = |volumes: Value, part: &Value, rest: &Value| {
        let streams = json!([stream("s", &["a"], part)]);
        let mut text = json!({"version": 1, "elapsed_s": 1, "volumes": volumes, "streams": streams});
        rest.as_object().unwrap().iter().for_each(|(name, value)| text[name] = value.clone());
        RunSpec::from_json(&text.to_string()).unwrap_err().to_string()
    };
    let queue = json!({"name": "q"});
    let one = json!([in_queue("a", 4, &queue)]);
    for (volumes, part, rest, words) in [
        (json!([in_queue("a", 4, &json!({"name": "q", "weight": 0}))]), json!({}), json!({}), "above 0"),
        (
            json!([in_queue("a", 4, &queue), in_queue("b", 5, &queue)]),
            json!({}),
            json!({}),
            "same outstanding",
        ),
        (json!([in_queue("a", 4, &queue), in_queue("b", 4, &queue)]), json!({}), json!({}), "needs streams"),
        (one.clone(), json!({"think_time": {"pause_s": 1}}), json!({}), "a pause"),
        (one.clone(), json!({}), json!({"shares": "total"}), "volumes.queue"),
        (one.clone(), json!({}), json!({"verify": "on"}), "volumes.queue"),
    ] {
        let message = refused(volumes, &part, &rest);
        assert!(message.contains(words), "{message}");
    }
    let streams = json!([
        stream("s", &["a"], &json!({"stop_after_s": 1})),
        stream("t", &["b"], &json!({"stop_after_s": 2})),
    ]);
    let volumes = json!([in_queue("a", 4, &queue), in_queue("b", 4, &queue)]);
    let text = json!({"version": 1, "elapsed_s": 1, "volumes": volumes, "streams": streams}).to_string();
    let message = RunSpec::from_json(&text).unwrap_err().to_string();
    assert!(message.contains("one start and one end"), "{message}");
    let of = |unit: &str, parts: Value| json!({"distribution": {"unit": unit, "parts": parts}});
    let mut hot = of("percent", json!([[100, 100]]));
    hot["hotband"] = json!({"unit": "percent", "start": 0, "end": 50});
    for (part, words) in [
        (of("percent", json!([[60, 50], [30, 50]])), "the shares add up to 90"),
        (of("percent", json!([[60, 50], [40, 40]])), "the lengths add up to 90"),
        (of("bytes", json!([[60, 0], [40, 4096]])), "lengths must be above 0"),
        (of("bytes", json!([])), "at least one"),
        (hot, "hotband"),
    ] {
        let message = refused(json!([null_volume("a", 1)]), &part, &json!({}));
        assert!(message.starts_with("streams.s.distribution") && message.contains(words), "{message}");
    }
}
