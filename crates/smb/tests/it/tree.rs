//! Files and folders of a share of Samba's server: what the calls do on its disk, and what they say when they fail.

use crate::peers::Samba;
use linerate_io::EpollDriver;
use linerate_smb::{
    Blame, EncryptionChoice, NameKind, SigningChoice, SmbAddress, SmbCredentials, SmbOptions, SmbToolError,
    SmbTree,
};
use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

type Tree = SmbTree<EpollDriver>;

fn connect(samba: &Samba, share: &str, options: &SmbOptions, write: bool) -> Result<Tree, SmbToolError> {
    let address = SmbAddress::of_folder(&samba.url(share, "")).unwrap();
    let credentials = SmbCredentials::new("", Samba::USER, Samba::PASSWORD);
    SmbTree::open(EpollDriver::new().unwrap(), &address, options, credentials, write)
}

fn ways() -> Vec<SmbOptions> {
    let plain = SmbOptions::default();
    let dialects = ["2.1", "3.0", "3.0.2", "3.1.1"].map(|name| {
        let dialect = serde_json::from_value(serde_json::json!(name)).unwrap();
        SmbOptions { dialect: Some(dialect), ..plain.clone() }
    });
    let signed = SmbOptions { signing: SigningChoice::On, ..plain.clone() };
    let sealed = SmbOptions { encryption: EncryptionChoice::On, ..plain };
    dialects.into_iter().chain([signed, sealed]).collect()
}

#[test]
fn each_call_does_on_the_disk_what_it_says() {
    let Some(samba) = Samba::start("") else { return };
    for way in ways() {
        let mut tree =
            connect(&samba, "share", &way, true).unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(tree.entry("top").unwrap(), None);
        assert_eq!(tree.entry("top/below").unwrap(), None);
        tree.make_folder("top").unwrap();
        tree.make_folder("top/below").unwrap();
        assert!(samba.path("top/below").is_dir());
        let first = tree.open_file("top/a", true, true).unwrap();
        let second = tree.open_file("top/below/b", true, true).unwrap();
        let data: Vec<u8> = (0..5_000_000_u32).map(|at| (at / 7) as u8).collect();
        tree.write(second, 3, &data, true).unwrap();
        tree.write(first, 0, &data[..10], false).unwrap();
        let mut back = vec![0; data.len()];
        tree.read(second, 3, &mut back).unwrap();
        assert!(back == data, "{way:?}");
        let past = tree.read(first, 5, &mut back[..6]).unwrap_err();
        assert!(past.to_string().contains("bytes moved"), "{past}");
        tree.close_file(first).unwrap();
        tree.close_file(second).unwrap();
        assert_eq!(tree.entry("top/a").unwrap(), Some(NameKind::File(10)));
        assert_eq!(tree.entry("top").unwrap(), Some(NameKind::Folder));
        tree.set_modified("top/a", 1_000_000_000).unwrap();
        let found = fs::metadata(samba.path("top/a")).unwrap();
        assert_eq!(found.modified().unwrap(), UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        assert!(fs::read(samba.path("top/below/b")).unwrap()[3..] == data);
        let mut names = tree.names("top").unwrap();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(names, [("a".to_owned(), NameKind::File(10)), ("below".to_owned(), NameKind::Folder)]);
        assert_eq!(tree.names("").unwrap(), [("top".to_owned(), NameKind::Folder)]);
        let full = tree.remove_folder("top").unwrap_err();
        assert!(full.to_string().contains("the folder is not empty"), "{full}");
        tree.remove_file("top/below/b").unwrap();
        tree.remove_folder("top/below").unwrap();
        tree.remove_file("top/a").unwrap();
        tree.remove_folder("top").unwrap();
        assert!(fs::read_dir(samba.path("")).unwrap().next().is_none());
        tree.close().unwrap();
    }
}

#[test]
fn a_long_list_is_whole() {
    let Some(samba) = Samba::start("") else { return };
    fs::create_dir(samba.path("many")).unwrap();
    let mut made: Vec<String> =
        (0..2000).map(|number| format!("a-file-with-a-long-name-{number:06}")).collect();
    for (size, name) in made.iter().enumerate() {
        fs::write(samba.path("many").join(name), vec![0; size % 7]).unwrap();
    }
    let mut tree = connect(&samba, "readonly", &SmbOptions::default(), false).unwrap();
    let mut found = tree.names("many").unwrap();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let sizes = found.iter().map(|(_, kind)| *kind);
    assert!(sizes.eq((0..2000).map(|size| NameKind::File(size % 7))));
    made.sort();
    assert!(found.into_iter().map(|(name, _)| name).eq(made));
}

#[test]
fn refusals_are_in_words_and_the_connection_stays() {
    let Some(samba) = Samba::start("") else { return };
    fs::create_dir(samba.path("folder")).unwrap();
    fs::write(samba.path("file"), "12345").unwrap();
    let mut tree = connect(&samba, "share", &SmbOptions::default(), true).unwrap();
    let refused = [
        (tree.make_folder("folder"), "the file exists"),
        (tree.make_folder("no/folder"), "no such folder"),
        (tree.remove_folder("file"), "a file, not a folder"),
        (tree.remove_file("folder"), "a folder, not a file"),
        (tree.remove_file("missing"), "no such file"),
        (tree.open_file("missing", false, false).map(drop), "no such file"),
        (tree.set_modified("missing", 0), "no such file"),
        (tree.names("file").map(drop), "a file, not a folder"),
    ];
    for (result, words) in refused {
        let error = result.unwrap_err();
        assert!(error.to_string().contains(words), "{error}: not {words}");
        assert!(!error.is_lost(), "{error}");
    }
    assert_eq!(tree.entry("file").unwrap(), Some(NameKind::File(5)));
    assert_eq!(fs::read(samba.path("file")).unwrap(), b"12345");
    let error = connect(&samba, "readonly", &SmbOptions::default(), true).err().unwrap();
    assert_eq!(error.blame(), Blame::User);
    assert!(error.to_string().contains("may not write"), "{error}");
}

#[test]
fn a_lost_connection_is_told_apart_from_a_refusal() {
    let Some(mut samba) = Samba::start("") else { return };
    let options = SmbOptions { replacement_timeout_s: 60.0, ..SmbOptions::default() };
    let mut tree = connect(&samba, "share", &options, true).unwrap();
    let open = tree.open_file("file", true, true).unwrap();
    samba.kill();
    let error = tree.write(open, 0, b"data", false).unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(error.blame(), Blame::Peer);
    assert!(tree.entry("file").unwrap_err().is_lost());
}
