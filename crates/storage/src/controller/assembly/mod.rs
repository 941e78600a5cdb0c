//! Finds the members of a RAID set, and decides whether the set may be made. Open this file first.
//!
//! A set is made only if no disk of it holds a set or anything else, and the array has no record that it served one.
//! Otherwise the owner must name it (`--create`). `probe.rs` finds out what a disk holds; `findings.rs` has the messages.

mod findings;
mod probe;

pub(super) use findings::Findings;
pub use findings::{Finding, Severity};
pub(super) use probe::{Content, begins_with_zeros, probe};

use super::{
    config::{RaidSetSpec, Served, ServedSet},
    disks::DiskTable,
    error::StorageError,
};
use crate::{amount::size_text, disk::Disk, raid::MemberLabel};
use futures::future::join_all;
use std::{collections::BTreeMap, rc::Rc};

/// Opens or creates RAID sets and pools, or refuses to.
pub(super) struct Assembly<'a> {
    pub(super) disk_table: &'a DiskTable,
    /// What the array served before.
    pub(super) served: &'a Served,
    /// Sets and pools that may be created again, even if their disks hold data.
    pub(super) create: &'a [String],
    pub(super) findings: Findings,
}

/// What to do with a set.
pub(super) enum Verdict {
    /// Assemble it from these disks, and make these spares.
    Assemble(Parts, Vec<String>),
    /// Create it on these disks, some of which are files to be made.
    Create(Vec<String>),
}

/// Disks for a set: members, and spares.
pub(super) struct Parts {
    pub(super) disks: Vec<Rc<dyn Disk>>,
    pub(super) spares: Vec<Rc<dyn Disk>>,
}

/// A disk of the configuration that exists.
struct Seen {
    name: String,
    is_spare: bool,
    content: Content,
}

impl Assembly<'_> {
    /// Judges a set.
    pub(super) async fn judge(&self, spec: &RaidSetSpec) -> Result<Verdict, StorageError> {
        let seen = self.look(spec).await?;
        let absent: Vec<String> = spec
            .disks
            .iter()
            .chain(&spec.spares)
            .filter(|name| self.disk_table.is_absent(name))
            .cloned()
            .collect();
        let known = self.served.raid_sets.get(&spec.name);
        if !self.may_create(&spec.name) {
            let members: Vec<(&Seen, &MemberLabel)> =
                seen.iter().filter_map(|one| one.member_of(&spec.name)).collect();
            if !members.is_empty() {
                return self.join(spec, &seen, members, &absent, known);
            }
            if known.is_some() {
                let causes = self.causes(spec, &seen);
                return Err(StorageError::Vanished { set: spec.name.clone(), causes });
            }
            self.check_blank(&spec.name, &seen)?;
            let served = absent.iter().find(|name| self.served.disks.contains(name));
            if let Some(name) = served {
                let causes = format!("{name}: {}", self.disk_table.why_absent(name));
                return Err(StorageError::Vanished { set: spec.name.clone(), causes });
            }
        }
        Ok(Verdict::Create(absent))
    }

    /// Whether the owner asked for this set or pool to be created again.
    pub(super) fn may_create(&self, name: &str) -> bool {
        self.create.iter().any(|created| created == name)
    }

    /// What the existing disks of a set hold.
    async fn look(&self, spec: &RaidSetSpec) -> Result<Vec<Seen>, StorageError> {
        let named =
            spec.disks.iter().map(|name| (name, false)).chain(spec.spares.iter().map(|name| (name, true)));
        let mut looking = Vec::new();
        for (name, is_spare) in named {
            if self.disk_table.disk(name)?.is_none() {
                continue;
            }
            looking.push(async move {
                // Disks in memory begin as zeros, and so do new files.
                let content = match self.disk_table.old_file(name) {
                    Some(file) => probe(&file).await.unwrap_or(Content::Other("nothing readable")),
                    None => Content::Nothing,
                };
                Seen { name: name.clone(), is_spare, content }
            });
        }
        Ok(join_all(looking).await)
    }

    /// Assembles an existing set.
    fn join(
        &self,
        spec: &RaidSetSpec,
        seen: &[Seen],
        members: Vec<(&Seen, &MemberLabel)>,
        absent: &[String],
        known: Option<&ServedSet>,
    ) -> Result<Verdict, StorageError> {
        let id = choose(&spec.name, &members, known)?;
        let ours: Vec<(&Seen, &MemberLabel)> =
            members.into_iter().filter(|(_, label)| label.set == id).collect();
        let newest = newest(&ours);
        check_age(&spec.name, &newest, known)?;
        check_twins(&spec.name, &ours, &newest)?;
        let mut parts = Parts { disks: Vec::new(), spares: Vec::new() };
        for one in seen {
            let about = format!("disk {}", one.name);
            match self.part(one, id, &newest) {
                Ok(note) => {
                    if let Some(note) = note {
                        self.findings.care(&about, note);
                    }
                    let into = if one.is_spare { &mut parts.spares } else { &mut parts.disks };
                    into.extend(self.disk_table.disk(&one.name)?);
                }
                Err(why) => {
                    self.disk_table.leave_out(&one.name, &spec.name);
                    self.findings.care(about, format!("is not used in RAID set {}: {why}", spec.name));
                }
            }
        }
        let is_new = |name: &&String| {
            let is_added = known.is_some() && !self.served.disks.contains(name);
            spec.spares.contains(name) && (is_added || self.may_create(name))
        };
        let (new, absent): (Vec<&String>, Vec<&String>) = absent.iter().partition(is_new);
        for name in absent {
            let what = if self.disk_table.is_in_use(name) { "is not looked at" } else { "is missing" };
            let text = format!("{what}: {}", self.disk_table.why_absent(name));
            self.findings.care(format!("disk {name}"), text);
            self.disk_table.leave_out(name, &spec.name);
        }
        self.note_swaps(&ours);
        self.check_complete(spec, seen, &ours, &newest)?;
        Ok(Verdict::Assemble(parts, new.into_iter().cloned().collect()))
    }

    /// Makes new spares. The set serves even if a spare cannot be made.
    pub(super) async fn new_spares(&self, names: &[String]) -> Vec<Rc<dyn Disk>> {
        if let Err(error) = self.disk_table.make(names).await {
            self.findings.care(format!("disk {}", names.join(", ")), format!("is no spare yet: {error}"));
        }
        names.iter().filter_map(|name| self.disk_table.disk(name).ok().flatten()).collect()
    }

    /// Makes disks that are in no RAID set, if they did not exist before.
    pub(super) async fn make_unassigned(
        &self,
        is_claimed: impl Fn(&str) -> bool,
    ) -> Result<(), StorageError> {
        let unassigned: Vec<String> =
            self.disk_table.absent().into_iter().filter(|name| !is_claimed(name)).collect();
        let (served, new): (Vec<_>, Vec<_>) = unassigned
            .into_iter()
            .partition(|name| self.served.disks.contains(name) && !self.may_create(name));
        for name in served {
            let text = format!("is missing: {}", self.disk_table.why_absent(&name));
            self.findings.care(format!("disk {name}"), text);
        }
        self.disk_table.make(&new).await
    }

    /// Whether a disk is a member of a set, and the notes about it; otherwise the reason why it is not a member.
    fn part(
        &self,
        one: &Seen,
        id: u64,
        newest: &BTreeMap<usize, &MemberLabel>,
    ) -> Result<Option<String>, String> {
        match &one.content {
            Content::Member(label) if label.set == id => {
                // No member of this group is up to date: reported elsewhere.
                let Some(group) = newest.get(&label.group) else { return Ok(None) };
                let is_member = group.has_member(label);
                if is_member && self.size_of(&one.name) < label.member_bytes {
                    return Err(self.cut_short(&one.name, label));
                }
                if !is_member && !one.is_spare {
                    return Err(OUT.to_owned());
                }
                Ok(label
                    .is_alone
                    .then(|| "one of its two superblocks is damaged; the other one is used".to_owned()))
            }
            Content::Nothing if one.is_spare => Ok(None),
            other => Err(describe(other)),
        }
    }

    fn size_of(&self, name: &str) -> u64 {
        self.disk_table.disk(name).ok().flatten().map_or(0, |disk| disk.size_bytes())
    }

    fn cut_short(&self, name: &str, label: &MemberLabel) -> String {
        let (has, needs) = (size_text(self.size_of(name)), size_text(label.member_bytes));
        format!("its size is {has}, and it needs {needs}: it was cut short")
    }

    /// Whether each group has enough members.
    fn check_complete(
        &self,
        spec: &RaidSetSpec,
        seen: &[Seen],
        ours: &[(&Seen, &MemberLabel)],
        newest: &BTreeMap<usize, &MemberLabel>,
    ) -> Result<(), StorageError> {
        // A new set: no member can be missing.
        let Some(any) = newest.values().next() else { return Ok(()) };
        let mut lacking = Vec::new();
        let mut is_lost = false;
        for number in 0..any.groups {
            let Some(group) = newest.get(&number) else {
                is_lost = true;
                lacking.push(format!("all of its group {number}"));
                continue;
            };
            let is_there = |place: usize| {
                ours.iter().any(|(one, label)| {
                    label.group == number
                        && label.own == Some((place, group.places[place].id))
                        && self.size_of(&one.name) >= label.member_bytes
                })
            };
            let out: Vec<usize> = (0..group.places.len())
                .filter(|place| !group.places[*place].is_filled || !is_there(*place))
                .collect();
            is_lost |= out.len() > group.level.tolerance(group.places.len());
            for place in out.into_iter().filter(|place| group.places[*place].is_filled) {
                let name = &group.places[place].disk;
                lacking.push(format!("{name}: {}", self.cause(name, spec, seen)));
            }
        }
        if !is_lost {
            return Ok(());
        }
        Err(StorageError::TooFew { set: spec.name.clone(), causes: listed(&lacking) })
    }

    /// Why a member is missing.
    fn cause(&self, name: &str, spec: &RaidSetSpec, seen: &[Seen]) -> String {
        if let Some(one) = seen.iter().find(|one| one.name == name) {
            return match &one.content {
                Content::Member(label) if self.size_of(name) < label.member_bytes => {
                    self.cut_short(name, label)
                }
                other => describe(other),
            };
        }
        if spec.disks.iter().chain(&spec.spares).any(|known| known == name) {
            return self.disk_table.why_absent(name);
        }
        "no disk of the configuration holds it".to_owned()
    }

    /// Why no member of a set was found, disk by disk.
    fn causes(&self, spec: &RaidSetSpec, seen: &[Seen]) -> String {
        let named = spec.disks.iter().map(|name| format!("{name}: {}", self.cause(name, spec, seen)));
        listed(&named.collect::<Vec<_>>())
    }

    /// Whether nothing would be overwritten.
    fn check_blank(&self, set: &str, seen: &[Seen]) -> Result<(), StorageError> {
        let Some(one) = seen.iter().find(|one| one.content != Content::Nothing) else { return Ok(()) };
        Err(StorageError::NotBlank {
            name: one.name.clone(),
            path: self.disk_table.path_of(&one.name).unwrap_or_default(),
            what: describe(&one.content),
            set: set.to_owned(),
        })
    }

    /// Disks whose files were exchanged are found by their superblocks. Only the names are wrong.
    fn note_swaps(&self, ours: &[(&Seen, &MemberLabel)]) {
        for (one, label) in ours {
            let place = label.own.and_then(|(slot, _)| label.places.get(slot));
            let is_other = |place: &&crate::raid::PlaceLabel| {
                place.disk != one.name && ours.iter().any(|(other, _)| other.name == place.disk)
            };
            if let Some(place) = place.filter(is_other) {
                let text = format!("holds what disk {} held before, and serves as that one", place.disk);
                self.findings.note(format!("disk {}", one.name), text);
            }
        }
    }
}

impl Seen {
    fn member_of(&self, set: &str) -> Option<(&Self, &MemberLabel)> {
        match &self.content {
            Content::Member(label) if label.name == set => Some((self, label)),
            _ => None,
        }
    }
}

const OUT: &str =
    "it failed or was replaced earlier; list it under `spares`, or take it out of the array file";

/// Selects one of several sets of the same name: the one that was served, or the one with most disks.
fn choose(
    set: &str,
    members: &[(&Seen, &MemberLabel)],
    known: Option<&ServedSet>,
) -> Result<u64, StorageError> {
    let mut counts: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (one, label) in members {
        counts.entry(label.set).or_default().push(&one.name);
    }
    let foreign = |counts: &BTreeMap<u64, Vec<&str>>| {
        let one = |(id, disks): (&u64, &Vec<&str>)| format!("{} hold {id:016x}", disks.join(", "));
        counts.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    if let Some(id) = known.and_then(ServedSet::id) {
        if counts.contains_key(&id) {
            return Ok(id);
        }
        let causes = format!("{} was served, and {}", format_args!("{id:016x}"), foreign(&counts));
        return Err(StorageError::OtherSet { set: set.to_owned(), causes });
    }
    let most = counts.values().map(Vec::len).max().unwrap_or(0);
    let mut largest = counts.iter().filter(|(_, disks)| disks.len() == most);
    match (largest.next(), largest.next()) {
        (Some((id, _)), None) => Ok(*id),
        _ => Err(StorageError::OtherSet { set: set.to_owned(), causes: foreign(&counts) }),
    }
}

/// The newest superblock of each group.
fn newest<'a>(ours: &[(&Seen, &'a MemberLabel)]) -> BTreeMap<usize, &'a MemberLabel> {
    let mut newest: BTreeMap<usize, &MemberLabel> = BTreeMap::new();
    for (_, label) in ours {
        let group = newest.entry(label.group).or_insert(label);
        if label.generation > group.generation {
            *group = label;
        }
    }
    newest
}

/// Whether the disks are at least as new as the last served ones. If not, newer disks are missing.
fn check_age(
    set: &str,
    newest: &BTreeMap<usize, &MemberLabel>,
    known: Option<&ServedSet>,
) -> Result<(), StorageError> {
    // This process has not served the set before.
    let Some(known) = known else { return Ok(()) };
    for (group, served) in known.generations.iter().enumerate() {
        if let Some(label) = newest.get(&group).filter(|label| label.generation < *served) {
            let (found, served) = (label.generation, *served);
            return Err(StorageError::Old { set: set.to_owned(), found, served });
        }
    }
    Ok(())
}

/// Two disks with the same slot are copies of each other, and one of them is old.
fn check_twins(
    set: &str,
    ours: &[(&Seen, &MemberLabel)],
    newest: &BTreeMap<usize, &MemberLabel>,
) -> Result<(), StorageError> {
    let mut places: BTreeMap<(usize, usize), &str> = BTreeMap::new();
    for (one, label) in ours {
        let (Some((slot, _)), Some(group)) = (label.own, newest.get(&label.group)) else { continue };
        if !group.has_member(label) {
            continue;
        }
        if let Some(other) = places.insert((label.group, slot), &one.name) {
            return Err(StorageError::Twins {
                set: set.to_owned(),
                one: other.to_owned(),
                other: one.name.clone(),
            });
        }
    }
    Ok(())
}

/// Describes what a disk holds if it is not a member.
fn describe(content: &Content) -> String {
    match content {
        Content::Nothing => "it is empty".to_owned(),
        Content::Member(label) => format!("it belongs to RAID set {} ({:016x})", label.name, label.set),
        Content::Damaged => "both of its superblocks are damaged".to_owned(),
        Content::Version(version) => {
            format!("it was written by a later version of Linerate (superblock version {version})")
        }
        Content::Other(what) => format!("it holds {what}"),
    }
}

/// The first few, and the number of the others.
fn listed(causes: &[String]) -> String {
    const SHOWN: usize = 4;
    let text = causes.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    match causes.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

/// Whether a new disk may join a set: it holds nothing, or was a member of that set.
pub(super) fn check_new(name: &str, path: &str, content: &Content, set: u64) -> Result<(), StorageError> {
    match content {
        Content::Nothing => Ok(()),
        Content::Member(label) if label.set == set => Ok(()),
        other => Err(StorageError::Refused(format!(
            "disk \"{name}\" ({path}): {}; nothing was changed. Say `overwrite` if that may be lost",
            describe(other)
        ))),
    }
}
