//! The tables, and the transactions that change them.

use super::{
    Layout,
    image::{Image, Step},
    region::Mirror,
};
use crate::{
    disk::{Disk, DiskError},
    pool::map::{Batch, Contents, Leaf, SnapshotRecord, VolumeRecord},
    runtime::Runtime,
};
use bytes::Bytes;
use linerate_io::Nanos;
use redb::{
    Builder, Database, Key, ReadableDatabase, ReadableTable, Table, TableDefinition, TableError, Value,
};
use std::rc::Rc;
use thiserror::Error;

/// Name: number, size in bytes, layer.
const VOLUMES: TableDefinition<'_, &str, (u64, u64, u64)> = TableDefinition::new("volumes");
/// Volume number and name: layer, size in bytes, seconds since 1970.
const SNAPSHOTS: TableDefinition<'_, (u64, &str), (u64, u64, f64)> = TableDefinition::new("snapshots");
/// Layer: the one below (0: none), volume number.
const LAYERS: TableDefinition<'_, u64, (u64, u64)> = TableDefinition::new("layers");
/// Layer and number of a leaf: the leaf.
const LEAVES: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("leaves");
const SETTINGS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("settings");

/// Interval of the attempts to get space.
const LOOK_FOR_SPACE_NS: Nanos = 100_000_000;
/// The database needs no cache of its file, because the file is in memory.
const CACHE_BYTES: usize = 1 << 20;

/// A pool's database.
pub(crate) struct Store {
    database: Database,
    image: Image,
    mirror: Mirror,
}

impl Store {
    /// Makes an empty database, in both copies.
    pub(crate) async fn create(disk: Rc<dyn Disk>, layout: &Layout) -> Result<Self, StoreError> {
        let image = Image::new(Vec::new(), layout.max_file_bytes());
        let database = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(image.clone())?;
        let store = Self { database, image, mirror: Mirror::new(disk, layout.metadata()) };
        store.transact(&Batch::default())?;
        let (file, _) = (store.image.to_bytes(), store.image.take_steps());
        for copy in &store.mirror.copies {
            copy.rewrite(file.clone()).await?;
        }
        Ok(store)
    }

    /// Opens the database from the first complete copy, repairs the other one, and reads everything. Also returns the
    /// number of damaged copies.
    pub(crate) async fn open(
        disk: Rc<dyn Disk>,
        layout: &Layout,
    ) -> Result<(Self, Contents, usize), StoreError> {
        let mirror = Mirror::new(Rc::clone(&disk), layout.metadata());
        let max_bytes = layout.max_file_bytes();
        let files = [mirror.copies[0].read(max_bytes).await?, mirror.copies[1].read(max_bytes).await?];
        let mut last = StoreError::Damaged("neither copy is whole".to_owned());
        for (number, file) in files.iter().enumerate() {
            let Some(file) = file else { continue };
            match Self::open_copy(file.clone(), max_bytes) {
                Ok((database, image, contents)) => {
                    let store = Self { database, image, mirror };
                    store.mend(number, &files).await?;
                    let is_whole = |file: &Vec<u8>| Self::open_copy(file.clone(), max_bytes).is_ok();
                    let is_damaged =
                        number > 0 || files[0] != files[1] && !files[1].as_ref().is_some_and(is_whole);
                    return Ok((store, contents, usize::from(is_damaged)));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn open_copy(file: Vec<u8>, max_bytes: u64) -> Result<(Database, Image, Contents), StoreError> {
        let image = Image::new(file, max_bytes);
        // The database was never closed cleanly, so it always verifies all of its checksums here.
        let database = Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(image.clone())?;
        let contents = read_all(&database)?;
        Ok((database, image, contents))
    }

    /// Brings both copies to the state that copy `good` had after it was opened. The other copy is not changed before
    /// the first one is done.
    async fn mend(&self, good: usize, files: &[Option<Vec<u8>>; 2]) -> Result<(), StoreError> {
        let steps = self.image.take_steps();
        if files[0] == files[1] {
            for step in steps {
                self.mirror.apply(step).await?;
            }
            return Ok(());
        }
        self.mirror.copies[1 - good].rewrite(self.image.to_bytes()).await?;
        self.mirror.copies[good].rewrite(self.image.to_bytes()).await?;
        Ok(())
    }

    /// Changes the tables in memory. [`Store::write`] makes the change durable.
    pub(crate) fn transact(&self, batch: &Batch) -> Result<(), StoreError> {
        let transaction = self.database.begin_write()?;
        {
            let mut volumes = transaction.open_table(VOLUMES)?;
            for (name, record) in &batch.volumes {
                let value = record.as_ref().map(|record| (record.id, record.size_bytes, record.layer));
                put(&mut volumes, name.as_str(), value)?;
            }
            let mut snapshots = transaction.open_table(SNAPSHOTS)?;
            for ((volume, name), record) in &batch.snapshots {
                let value = record.as_ref().map(|record| (record.layer, record.size_bytes, record.at_s));
                put(&mut snapshots, (*volume, name.as_str()), value)?;
            }
            let mut layers = transaction.open_table(LAYERS)?;
            for (id, record) in &batch.layers {
                put(&mut layers, id, record.map(|(below, owner)| (below.unwrap_or(0), owner)))?;
            }
            let mut leaves = transaction.open_table(LEAVES)?;
            for (key, leaf) in &batch.leaves {
                put(&mut leaves, key, leaf.as_deref())?;
            }
            let mut settings = transaction.open_table(SETTINGS)?;
            for (key, value) in &batch.settings {
                put(&mut settings, key.as_str(), value.as_deref())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Writes the changes in memory to the disk; waits if there is no space.
    pub(crate) fn write(&self, runtime: &Runtime) -> impl Future<Output = Result<(), DiskError>> + use<> {
        let (steps, mirror): (Vec<Step>, _) = (self.image.take_steps(), self.mirror.clone());
        let runtime = runtime.clone();
        async move {
            for step in steps {
                while let Err(error) = mirror.apply(step.clone()).await {
                    match error {
                        // The changes are made in memory, so they must reach the disk, however late.
                        DiskError::NoSpace(_) => runtime.sleep(LOOK_FOR_SPACE_NS).await,
                        error => return Err(error),
                    }
                }
            }
            Ok(())
        }
    }

    /// Whether there is space for more than pages.
    pub(crate) fn may_grow(&self) -> bool {
        self.image.may_grow()
    }
}

fn put<'k, 'v, K: Key, V: Value>(
    table: &mut Table<'_, K, V>,
    key: impl std::borrow::Borrow<K::SelfType<'k>>,
    value: Option<impl std::borrow::Borrow<V::SelfType<'v>>>,
) -> Result<(), redb::StorageError> {
    match value {
        Some(value) => table.insert(key, value).map(drop),
        None => table.remove(key).map(drop),
    }
}

fn read_all(database: &Database) -> Result<Contents, StoreError> {
    let transaction = database.begin_read()?;
    let mut contents = Contents::default();
    for row in transaction.open_table(VOLUMES)?.iter()? {
        let (name, value) = row?;
        let (id, size_bytes, layer) = value.value();
        contents.volumes.insert(name.value().to_owned(), VolumeRecord { id, size_bytes, layer });
    }
    for row in transaction.open_table(SNAPSHOTS)?.iter()? {
        let (key, value) = row?;
        let ((volume, name), (layer, size_bytes, at_s)) = (key.value(), value.value());
        contents.snapshots.insert((volume, name.to_owned()), SnapshotRecord { layer, size_bytes, at_s });
    }
    for row in transaction.open_table(LAYERS)?.iter()? {
        let (id, value) = row?;
        let (below, owner) = value.value();
        contents.layers.push((id.value(), (below != 0).then_some(below), owner));
    }
    for row in transaction.open_table(LEAVES)?.iter()? {
        let (key, value) = row?;
        let (layer, number) = key.value();
        let leaf = Leaf::decode(value.value());
        let leaf = leaf.ok_or_else(|| StoreError::Damaged(format!("leaf {number} of layer {layer}")))?;
        contents.leaves.push((layer, number, leaf));
    }
    for row in transaction.open_table(SETTINGS)?.iter()? {
        let (key, value) = row?;
        contents.settings.insert(key.value().to_owned(), Bytes::copy_from_slice(value.value()));
    }
    Ok(contents)
}

/// Why the metadata cannot be read or written.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("the metadata is damaged: {0}")]
    Damaged(String),
    #[error("the metadata cannot be used: {0}")]
    Database(#[from] Box<redb::Error>),
}

macro_rules! from_database {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}

from_database!(
    redb::DatabaseError,
    redb::TransactionError,
    TableError,
    redb::StorageError,
    redb::CommitError
);
