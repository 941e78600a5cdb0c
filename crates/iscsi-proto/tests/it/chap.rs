//! The rules for secrets, and the hash that a login uses.

use super::pair::*;
use linerate_iscsi_proto::chap::{
    Algorithm, ChapSecret, SECRET_BYTES_MAX, SECRET_BYTES_MIN, SecretError, encode_hex,
};
use linerate_iscsi_proto::login::*;
use linerate_iscsi_proto::pdu::{BHS_BYTES, LoginRequest, LoginStatus};

/// The value of `CHAP_A` in the target's answer to an initiator that offers these algorithms, or the refusal.
fn chosen(offered: &[Algorithm], taken: &[Algorithm]) -> Result<u32, LoginStatus> {
    let mut host = Host::with_chap(one_way(taken, "a secret of alice"));
    let config = InitiatorConfig { chap: Some(one_way(offered, "a secret of alice")), ..initiator_config() };
    let (mut initiator, mut target) = (InitiatorLogin::new(config), TargetLogin::new(target_config()));
    let (mut request, mut data) = initiator.start();
    loop {
        let mut bhs = [0; BHS_BYTES];
        request.emit(&mut bhs);
        let reply = target.receive(&LoginRequest::parse(&bhs).unwrap(), &data, &mut host);
        if reply.response.status != LoginStatus::SUCCESS {
            return Err(reply.response.status);
        }
        let pairs = linerate_iscsi_proto::text::parse(&reply.data).unwrap();
        if let Some((_, code)) = pairs.iter().find(|(key, _)| *key == "CHAP_A") {
            return Ok(code.parse().unwrap());
        }
        match initiator.receive(&reply.response, &reply.data, &mut |bytes| bytes.fill(1)).unwrap() {
            InitiatorStep::Send(next, text) => (request, data) = (next, text),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_target_takes_the_first_of_the_initiators_algorithms_that_it_admits() {
    use Algorithm::{Md5, Sha1, Sha3_256, Sha256};
    let all = [Sha3_256, Sha256, Sha1, Md5];
    assert_eq!(all, Algorithm::ALL, "best first");
    let weakest_first = [Md5, Sha1, Sha256, Sha3_256];
    assert_eq!(chosen(&weakest_first, &all), Ok(5), "the initiator's order decides");
    assert_eq!(chosen(&all, &weakest_first), Ok(8));
    assert_eq!(chosen(&[Md5, Sha256], &[Sha3_256, Sha256]), Ok(7), "MD5 is not admitted");
    assert_eq!(chosen(&[Md5, Sha1], &[Sha256, Sha1]), Ok(6));
    let refused = Err(LoginStatus::AUTHENTICATION_FAILED);
    assert_eq!(
        chosen(&[Md5], &[Sha3_256, Sha256, Sha1]),
        refused,
        "MD5 alone is refused where the file says so"
    );
}

#[test]
fn every_algorithm_authenticates_both_sides() {
    for algorithm in Algorithm::ALL {
        let mut host = Host::with_chap(mutual(&[algorithm], "the array's secret"));
        let chap = Some(mutual(&[algorithm], "the array's secret"));
        let (initiator, target) =
            run(InitiatorConfig { chap, ..initiator_config() }, target_config(), &mut host).done();
        assert_eq!((initiator.user.as_deref(), target.user.as_deref()), (Some("alice"), Some("alice")));
        assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        assert_eq!(Algorithm::from_code(algorithm.code()), Some(algorithm));
    }
    assert_eq!(Algorithm::from_name("sha512"), None);
}

/// The values were computed with another implementation (Python's hashlib).
#[test]
fn responses_are_those_of_other_implementations() {
    let secret = ChapSecret::new("twelve bytes");
    let response = |algorithm: Algorithm| encode_hex(&algorithm.respond(7, &secret, &[2; 16]));
    assert_eq!(response(Algorithm::Md5), "0xac3ecce335938945df584e017fe8ff79");
    assert_eq!(response(Algorithm::Sha1), "0xa08a66a8b12046fb00fcc9271140a716f260f10e");
    assert_eq!(
        response(Algorithm::Sha256),
        "0x28e9e4b23cfe976a891179ecf2c2ef5720d96e275fb2de48d8b9a80696589edb"
    );
    assert_eq!(
        response(Algorithm::Sha3_256),
        "0x9742a01367304ddc061831d5f09097574e616653ea1f8700db15604fe6f71463"
    );
}

#[test]
fn a_targets_secret_has_96_bits_at_least_and_255_bytes_at_most() {
    let judged = |len: usize| ChapSecret::new(vec![b'x'; len]).check();
    assert_eq!(judged(0), Err(SecretError::Empty));
    assert_eq!(judged(11), Err(SecretError::Short(11)));
    assert_eq!((judged(SECRET_BYTES_MIN), judged(SECRET_BYTES_MAX)), (Ok(()), Ok(())));
    assert_eq!(judged(256), Err(SecretError::Long(256)));
    assert!(SecretError::Short(11).to_string().contains("12 bytes"), "{}", SecretError::Short(11));
}
