//! Opens the targets and volumes of a configuration.

use crate::{
    array::ArrayError,
    config::{AluaState, ArrayConfig},
    engine::Engines,
    portals,
    target::{IscsiTarget, Opening},
};
use linerate_io::Driver;
use std::sync::Arc;

/// Opens everything that a configuration names.
pub(crate) fn open_targets<D: Driver>(
    config: &ArrayConfig,
    driver: &mut D,
    engines: Option<&Engines>,
) -> Result<(Vec<Arc<IscsiTarget>>, Vec<crate::volume::SharedVolume>), ArrayError> {
    check_limits(config)?;
    let groups = groups(config)?;
    let (array, volumes) = (config.name.as_str(), Vec::new());
    let mut opening = Opening { array, groups: &groups, driver, engines, volumes };
    let mut targets: Vec<Arc<IscsiTarget>> = Vec::new();
    for target in &config.targets {
        let fault = |error| ArrayError::Target { name: target.name.clone(), error: Box::new(error) };
        let opened = opening.target(target).map_err(fault)?;
        if targets.iter().any(|other| other.name == opened.name) {
            return Err(ArrayError::TwoTargets(opened.name));
        }
        targets.push(Arc::new(opened));
    }
    for made in engines.into_iter().flat_map(Engines::made) {
        if let Err(error) = opening.made(&targets, made) {
            tracing::error!(event = "volume_not_shown", volume = made.1, %error, "this volume is not shown");
        }
    }
    Ok((targets, opening.volumes))
}

/// The portal groups and their states.
pub(crate) fn groups(config: &ArrayConfig) -> Result<Vec<(u16, AluaState)>, ArrayError> {
    let state = |tag: u16| config.portal_groups.iter().find(|group| group.tag == tag).map(|group| group.alua);
    Ok(portals::groups(config)?.into_iter().map(|tag| (tag, state(tag).unwrap_or_default())).collect())
}

fn check_limits(config: &ArrayConfig) -> Result<(), ArrayError> {
    let limits = &config.limits;
    let segment = 512..=0x00ff_ffff;
    let wrong = |key, rule| Err(ArrayError::Limit { key, rule });
    if !segment.contains(&limits.max_recv_data_segment_bytes) {
        return wrong("max_recv_data_segment_bytes", "512 to 16777215 (RFC 7143 section 13.12)");
    }
    if !segment.contains(&limits.max_burst_bytes) {
        return wrong("max_burst_bytes", "512 to 16777215 (RFC 7143 section 13.13)");
    }
    if !(512..=limits.max_burst_bytes).contains(&limits.first_burst_bytes) {
        return wrong("first_burst_bytes", "512 to `max_burst_bytes` (RFC 7143 section 13.14)");
    }
    if !(1..=4096).contains(&limits.commands_per_session) {
        return wrong("commands_per_session", "1 to 4096");
    }
    if !(1..=64).contains(&limits.connections_per_session) {
        return wrong("connections_per_session", "1 to 64");
    }
    if limits.sessions == 0 {
        return wrong("sessions", "at least 1");
    }
    if limits.half_open_connections == 0 {
        return wrong("half_open_connections", "at least 1");
    }
    if limits.half_open_per_peer == 0 {
        return wrong("half_open_per_peer", "at least 1");
    }
    if limits.text_bytes < 8192 {
        return wrong("text_bytes", "at least 8192: a login may need that much");
    }
    let times = [
        ("login_timeout_s", limits.login_timeout_s),
        ("idle_timeout_s", limits.idle_timeout_s),
        ("nop_interval_s", limits.nop_interval_s),
        ("nop_timeout_s", limits.nop_timeout_s),
        ("stall_timeout_s", limits.stall_timeout_s),
        ("pressed_stall_timeout_s", limits.pressed_stall_timeout_s),
    ];
    for (key, time) in &times[4..] {
        if *time == 0.0 {
            return wrong(key, "more than 0: others may wait for what a stalled peer holds");
        }
    }
    match times.iter().find(|(_, time)| !(0.0..=1e6).contains(time)) {
        Some((key, _)) => wrong(key, "0 to 1000000 seconds"),
        None => Ok(()),
    }
}
