//! Other programs: QEMU (qemu-img, qemu-io) and libvhdi (vhdiinfo). Skipped, with a message, if they are not installed.

use linerate_sim::Rng;
use linerate_vhdx::{CreateOptions, GuidSource, OpenMode, Preallocation, VhdxImage};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

const MIB: u64 = 1 << 20;

/// Prints why a test does not run. If `LINERATE_CI` is set every program must be installed, and a skip is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("LINERATE_CI").is_none(), "{reason}, but LINERATE_CI is set");
    eprintln!("skipped: {reason}");
}

/// Whether a program is there. If not, says with which Debian package it comes.
fn has(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skip(&format!("{program} is not installed (Debian: {package})"));
    }
    found
}

fn has_qemu() -> bool {
    has("qemu-img", "qemu-utils") && has("qemu-io", "qemu-utils")
}

/// Runs a program that must succeed; returns what it printed.
fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}");
    said
}

/// Runs commands of qemu-io on an image; each read with a pattern must find it.
fn qemu_io(image: &Path, commands: &[String]) {
    let mut args = vec!["-f", "vhdx"];
    args.extend(commands.iter().flat_map(|command| ["-c", command.as_str()]));
    args.push(image.to_str().unwrap());
    let said = run("qemu-io", &args);
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
}

fn create(path: &Path, options: &CreateOptions) -> VhdxImage<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    VhdxImage::create(file, options, GuidSource::random()).unwrap()
}

fn open(path: &Path) -> VhdxImage<File> {
    let file = File::options().read(true).write(true).open(path).unwrap();
    VhdxImage::open(file, OpenMode::ReadWrite, GuidSource::random()).unwrap()
}

fn content(image: &mut VhdxImage<File>) -> Vec<u8> {
    let mut bytes = vec![0; image.size_bytes() as usize];
    image.read(0, &mut bytes).unwrap();
    bytes
}

/// Images of every kind: block and sector sizes, fixed and dynamic.
fn kinds() -> Vec<CreateOptions> {
    let mut kinds = Vec::new();
    for (size_bytes, block_bytes) in [(9 * MIB + 4096, 1 << 20), (40 * MIB, 8 << 20), (70 * MIB, 32 << 20)] {
        for preallocation in [Preallocation::Off, Preallocation::Length, Preallocation::Full] {
            for logical_sector_bytes in [512, 4096] {
                kinds.push(CreateOptions { size_bytes, block_bytes, logical_sector_bytes, preallocation });
            }
        }
    }
    kinds
}

/// Random runs of sectors with random bytes; returns the whole content.
fn fill(image: &mut VhdxImage<File>, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut expected = vec![0; image.size_bytes() as usize];
    for _ in 0..30 {
        let offset = rng.range(0, image.size_bytes() / 4096 - 1) * 4096;
        let len = (rng.range(1, 60) * 4096).min(image.size_bytes() - offset) as usize;
        let target = &mut expected[offset as usize..][..len];
        rng.fill(target);
        image.write(offset, target).unwrap();
        if rng.chance(20) {
            image.flush().unwrap();
        }
    }
    expected
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.vhdx");
    (folder, path)
}

#[test]
fn qemu_accepts_and_reads_our_images() {
    if !has_qemu() {
        return;
    }
    for (seed, options) in kinds().iter().enumerate() {
        let (folder, path) = folder();
        let mut image = create(&path, options);
        let expected = fill(&mut image, seed as u64);
        image.close().unwrap();
        // QEMU reads images with sectors of 512 bytes only.
        if options.logical_sector_bytes != 512 {
            continue;
        }
        let checked = run("qemu-img", &["check", "-f", "vhdx", path.to_str().unwrap()]);
        assert!(checked.contains("No errors were found"), "{options:?}: {checked}");
        let raw = folder.path().join("raw");
        run(
            "qemu-img",
            &["convert", "-f", "vhdx", "-O", "raw", path.to_str().unwrap(), raw.to_str().unwrap()],
        );
        assert!(std::fs::read(&raw).unwrap() == expected, "{options:?}: qemu-img reads other bytes");
    }
}

#[test]
fn qemu_replays_our_log() {
    if !has_qemu() {
        return;
    }
    let (_folder, path) = folder();
    let options = CreateOptions { block_bytes: 1 << 20, ..CreateOptions::dynamic(64 * MIB) };
    let mut image = create(&path, &options);
    image.write(3 * MIB, &vec![7; 65536]).unwrap();
    image.flush().unwrap();
    image.write(20 * MIB, &vec![9; 65536]).unwrap();
    image.flush().unwrap();
    drop(image);
    // The table loses its entries; they are in the log.
    let file = File::options().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4096], 3 * MIB).unwrap();
    run("qemu-img", &["check", "-r", "all", "-f", "vhdx", path.to_str().unwrap()]);
    qemu_io(
        &path,
        &["read -P 7 3M 64k".to_owned(), "read -P 9 20M 64k".to_owned(), "read -P 0 21M 1M".to_owned()],
    );
    assert_eq!(open(&path).allocated_blocks(), 2);
}

#[test]
fn we_read_images_of_qemu_in_both_directions() {
    if !has_qemu() {
        return;
    }
    for (number, kind) in ["dynamic", "fixed"].into_iter().enumerate() {
        for block in ["1M", "8M", "32M"] {
            let (folder, path) = folder();
            let raw = folder.path().join("raw");
            let mut expected = vec![0; 50 * MIB as usize];
            Rng::new(number as u64).fill(&mut expected[(20 * MIB) as usize..(31 * MIB) as usize]);
            std::fs::write(&raw, &expected).unwrap();
            let how = format!("subformat={kind},block_size={block}");
            run(
                "qemu-img",
                &[
                    "convert",
                    "-f",
                    "raw",
                    "-O",
                    "vhdx",
                    "-o",
                    &how,
                    raw.to_str().unwrap(),
                    path.to_str().unwrap(),
                ],
            );
            let mut image = open(&path);
            assert!(content(&mut image) == expected, "{how}");
            image.write(5 * MIB + 512, &[3; 4096]).unwrap();
            image.write(49 * MIB, &[4; 512]).unwrap();
            image.close().unwrap();
            qemu_io(
                &path,
                &[
                    format!("read -P 3 {} 4096", 5 * MIB + 512),
                    format!("read -P 4 {} 512", 49 * MIB),
                    format!("read -P 0 {} 512", 5 * MIB),
                    "write -P 5 30M 3M".to_owned(),
                ],
            );
            let mut image = open(&path);
            expected[(5 * MIB + 512) as usize..][..4096].fill(3);
            expected[(49 * MIB) as usize..][..512].fill(4);
            expected[(30 * MIB) as usize..(33 * MIB) as usize].fill(5);
            assert!(content(&mut image) == expected, "{how} after qemu-io wrote");
        }
    }
}

#[test]
fn we_replay_the_log_of_a_qemu_that_was_killed() {
    if !has_qemu() {
        return;
    }
    let (_folder, path) = folder();
    run("qemu-img", &["create", "-f", "vhdx", "-o", "block_size=1M", path.to_str().unwrap(), "64M"]);
    let commands = ["-c", "write -P 6 10M 2M", "-c", "flush", "-c", "sigraise 9"];
    let killed = Command::new("qemu-io").args(["-f", "vhdx"]).args(commands).arg(&path).output().unwrap();
    assert!(!killed.status.success(), "qemu-io was not killed");
    let mut image = open(&path);
    let mut found = vec![0; 2 * MIB as usize];
    image.read(10 * MIB, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 6));
}

#[test]
fn libvhdi_reads_our_images() {
    if !has("vhdiinfo", "libvhdi-utils") {
        return;
    }
    for options in kinds() {
        let (_folder, path) = folder();
        create(&path, &options).close().unwrap();
        let said = run("vhdiinfo", &[path.to_str().unwrap()]);
        let kind = if options.preallocation == Preallocation::Off { "Dynamic" } else { "Fixed" };
        assert!(said.contains(kind) && said.contains(&options.size_bytes.to_string()), "{options:?}: {said}");
    }
}
