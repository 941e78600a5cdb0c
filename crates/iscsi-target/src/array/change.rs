//! Changes to an array that serves: asymmetric access states of its portal groups.

use crate::{
    config::{AluaChange, ArrayChange},
    target::IscsiTarget,
};
use linerate_scsi::{AccessState, LogicalUnit};
use std::sync::Arc;

/// Units and the states that they get.
type Plan = Vec<(Arc<LogicalUnit>, Vec<(u16, AccessState)>)>;

/// Makes a change. If anything in it is wrong, nothing changes.
pub(crate) fn change(targets: &[Arc<IscsiTarget>], change: &ArrayChange) -> Result<(), ChangeError> {
    let mut plan = Plan::new();
    for entry in &change.alua {
        let units = units_of(targets, entry)?;
        let has_group = |unit: &LogicalUnit| unit.config().ports.iter().any(|port| port.group == entry.group);
        if !units.iter().any(|unit| has_group(unit)) {
            return Err(ChangeError::Group(entry.group));
        }
        for unit in units {
            let state = (entry.group, entry.state.into());
            match plan.iter_mut().find(|(planned, _)| Arc::ptr_eq(planned, &unit)) {
                Some((_, states)) => states.push(state),
                None => plan.push((unit, vec![state])),
            }
        }
    }
    for (unit, states) in plan {
        unit.set_access(&last_of_each(&states));
    }
    Ok(())
}

/// The volumes of an entry.
fn units_of(targets: &[Arc<IscsiTarget>], entry: &AluaChange) -> Result<Vec<Arc<LogicalUnit>>, ChangeError> {
    let wanted = |target: &&Arc<IscsiTarget>| match &entry.target {
        Some(name) => name.eq_ignore_ascii_case(&target.name),
        None => true,
    };
    let targets: Vec<_> = targets.iter().filter(wanted).collect();
    if let Some(name) = entry.target.as_ref().filter(|_| targets.is_empty()) {
        return Err(ChangeError::Target(name.clone()));
    }
    // A volume's name is its unit's serial number.
    let is_named = |unit: &LogicalUnit, name: &String| unit.config().identity.serial == *name;
    let units: Vec<_> = targets
        .iter()
        .flat_map(|target| target.inventory.units())
        .map(|(_, unit)| unit)
        .filter(|unit| entry.volume.as_ref().is_none_or(|name| is_named(unit, name)))
        .collect();
    match &entry.volume {
        Some(name) if units.is_empty() => Err(ChangeError::Volume(name.clone())),
        _ => Ok(units),
    }
}

/// The last state of each group; earlier ones are not reported.
fn last_of_each(states: &[(u16, AccessState)]) -> Vec<(u16, AccessState)> {
    let mut last: Vec<(u16, AccessState)> = Vec::new();
    for (tag, state) in states {
        match last.iter_mut().find(|(known, _)| known == tag) {
            Some((_, known)) => *known = *state,
            None => last.push((*tag, *state)),
        }
    }
    last
}

/// An invalid change (fault: user).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No portal is in the group.
    #[error("there is no portal group {0}; `group` is the tag of a group that a portal is in")]
    Group(u16),
    /// No such target.
    #[error("there is no target \"{0}\"; `target` is the whole iSCSI name")]
    Target(String),
    /// No such volume.
    #[error("there is no volume \"{0}\"; `volume` is its name, not its LUN")]
    Volume(String),
}
