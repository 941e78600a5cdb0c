//! A format: removes an old structure, makes the folders, makes and fills the files. All threads of all structures end
//! a part before the next one begins.

use super::{
    operation::FileThread,
    record::event,
    spec::{FileOp, FormatSpec},
    tree::CONTROL_FILE,
};
use linerate_blame::Blame;
use linerate_io::blocking::EntryKind;
use std::path::Path;

/// While another thread makes the folder above.
const PARENT_WAIT_NS: u64 = 50_000;

/// Whether a name in an anchor is one that a structure has.
pub(super) fn is_of_a_structure(name: &str, kind: EntryKind) -> bool {
    let numbers = |text: &str, separator: char| {
        let mut parts = text.split(separator);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let count = parts.clone().count();
        parts.all(is_number).then_some(count)
    };
    let inner = |prefix: &str, suffix: &str| name.strip_prefix(prefix)?.strip_suffix(suffix);
    match kind {
        EntryKind::File(_) if name == CONTROL_FILE => true,
        EntryKind::File(_) => {
            inner("vdb_f", ".file").is_some_and(|text| matches!(numbers(text, '.'), Some(1 | 2)))
        }
        EntryKind::Folder => inner("vdb.", ".dir").is_some_and(|text| numbers(text, '_') == Some(2)),
        EntryKind::Other => false,
    }
}

/// The last number in a name, such as the width in `vdb.1_4.dir`; 0: it has none.
fn number_in(name: &str) -> u32 {
    let runs = name.split(|one: char| !one.is_ascii_digit());
    runs.filter_map(|digits| digits.parse().ok()).next_back().unwrap_or(0)
}

impl FileThread<'_> {
    /// Carries out this thread's part. `is_first`: of the threads of its structure.
    pub(super) fn format(&mut self, format: FormatSpec, is_first: bool) {
        if is_first {
            let anchor = self.tree.anchor.clone();
            if format.delete {
                self.shared.data.all_removed(self.work.structure);
                self.clear(&anchor, true);
            }
            // Other hosts may still remove what is theirs.
            if format.folders || format.files {
                let _ = self.look();
            }
        }
        self.shared.end_part(1);
        if format.folders {
            self.make_folders();
        }
        self.shared.end_part(2);
        if format.files {
            self.make_files();
        }
    }

    /// Looks at what exists; a failure is told.
    fn look(&self) -> Option<()> {
        let error = self.tree.look(&*self.files.own).err()?;
        let what = format!("the structure under {} cannot be read: {error}", self.tree.anchor);
        let told = event("io_error", self.shared.seconds(), self.structure(), what, Blame::Host);
        self.shared.recorder.failed(self.index, (self.work_index, FileOp::Mkdir), || told);
        Some(())
    }

    /// Removes what has names of a structure in a folder; all else stays, and so do the folders that hold it. Hosts that
    /// share the structure divide what `is_anchor` holds by the numbers in the names.
    fn clear(&mut self, folder: &str, is_anchor: bool) {
        let Ok(found) = self.files.own.names(Path::new(folder)) else { return };
        for (name, kind) in found {
            if self.shared.signal.is_stopped() || !is_of_a_structure(&name, kind) {
                continue;
            }
            if is_anchor && !self.tree.is_own(number_in(&name)) {
                continue;
            }
            let path = format!("{folder}/{name}");
            if kind == EntryKind::Folder {
                self.clear(&path, false);
                self.path.clone_from(&path);
                let is_empty = self.files.own.names(Path::new(&path)).is_ok_and(|left| left.is_empty());
                if is_empty {
                    self.timed(FileOp::Rmdir, (0, None), || self.files.own.remove_folder(Path::new(&path)));
                }
            } else {
                self.path.clone_from(&path);
                self.timed(FileOp::Delete, (0, None), || self.files.own.remove_file(Path::new(&path)));
            }
        }
    }

    fn make_folders(&mut self) {
        let tree = self.tree;
        loop {
            let place = tree.next_folder();
            if place >= tree.folders.len() as u64 || self.shared.signal.is_stopped() {
                return;
            }
            let folder = place as u32;
            if tree.folder_exists(Some(folder)) {
                continue;
            }
            // The folder above has an earlier place: another thread makes it now, or could not.
            let mut waits = 0;
            while !tree.folder_exists(tree.parent(folder)) && waits < 20_000 {
                waits += 1;
                if self.shared.signal.wait(PARENT_WAIT_NS) {
                    return;
                }
            }
            self.path.clear();
            self.path.push_str(&tree.folders[place as usize].path);
            if self.make_named_folder(None).is_some() {
                tree.set_folder(folder, true);
            }
        }
    }

    fn make_files(&mut self) {
        let tree = self.tree;
        loop {
            let place = tree.next_file();
            if place >= tree.file_count() || self.shared.signal.is_stopped() {
                return;
            }
            let file = tree.file_at(place);
            let (has, wanted) = (tree.size(file), tree.wanted_bytes(file));
            if has.is_some_and(|has| has >= wanted) || !tree.claim(file, true) {
                continue;
            }
            match self.open_blocks(file, true, true) {
                // It goes on at the last whole block.
                Some(blocks) => {
                    let block = u64::from(self.work.sizes[0].0);
                    self.fill(blocks, has.unwrap_or(0) / block * block);
                }
                None => tree.release(file),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_of_a_structure, number_in};
    use linerate_io::blocking::EntryKind::{File, Folder, Other};

    #[test]
    fn a_name_has_its_last_number() {
        let names = ["vdb.1_12.dir", "vdb_f0007.file", "vdb_control.file", "vdb.1_99999999999.dir"];
        assert_eq!(names.map(number_in), [12, 7, 0, 1]);
    }

    #[test]
    fn only_names_of_a_structure_may_be_removed() {
        for name in ["vdb_f0001.file", "vdb_f12345.file", "vdb_f0001.0002.file", "vdb_control.file"] {
            assert!(is_of_a_structure(name, File(1)), "{name}");
            assert!(!is_of_a_structure(name, Folder) && !is_of_a_structure(name, Other), "{name}");
        }
        assert!(is_of_a_structure("vdb.1_10.dir", Folder) && !is_of_a_structure("vdb.1_10.dir", File(1)));
        for name in ["vdb_f.file", "vdb_fa.file", "vdb_f0001.file.bak", "notes", "vdb_f1.2.3.file"] {
            assert!(!is_of_a_structure(name, File(1)), "{name}");
        }
        for name in ["vdb.1.dir", "vdb.1_2_3.dir", "vdb._.dir", "data", "vdb.1_x.dir"] {
            assert!(!is_of_a_structure(name, Folder), "{name}");
        }
    }
}
