//! `bench-signing ALGORITHM BYTES`: the signature of SMB (MS-SMB2 3.1.4.1) over data of a length, without a network; prints
//! the CPU microseconds of one as JSON. The data are those of eight I/Os, as many as the bench has in flight.

use aes::Aes128;
use cmac::{Cmac, Mac};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use hmac::Hmac;
use linerate_io::system::now_ns;
use sha2::Sha256;
use std::hint::black_box;
use std::io::Write;

const IOS: usize = 8;
const NS: u64 = 300_000_000;
const KEY: [u8; 16] = [7; 16];

/// Microseconds that `hash` takes for one I/O.
fn measured_us(data: &[Vec<u8>], mut hash: impl FnMut(&[u8])) -> f64 {
    let (start_ns, mut done) = (now_ns(), 0_u32);
    loop {
        for io in data {
            hash(black_box(io));
            done += 1;
        }
        let took_ns = now_ns() - start_ns;
        if took_ns >= NS {
            return took_ns as f64 / 1e3 / f64::from(done);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: bench-signing HMAC-SHA256|AES-CMAC|AES-GMAC BYTES";
    let (algorithm, bytes) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?.parse()?);
    let data: Vec<Vec<u8>> = (0..IOS).map(|io| vec![io as u8; bytes]).collect();
    let hash_us = match algorithm.as_str() {
        "HMAC-SHA256" => {
            let keyed = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&KEY)?;
            measured_us(&data, |io| {
                let mut mac = keyed.clone();
                hmac::Mac::update(&mut mac, io);
                black_box(hmac::Mac::finalize(mac));
            })
        }
        "AES-CMAC" => {
            let keyed = <Cmac<Aes128> as cmac::KeyInit>::new(&KEY.into());
            measured_us(&data, |io| {
                let mut mac = keyed.clone();
                Mac::update(&mut mac, io);
                black_box(Mac::finalize(mac));
            })
        }
        "AES-GMAC" => {
            let keyed = <GHash as ghash::universal_hash::KeyInit>::new(&KEY.into());
            measured_us(&data, |io| {
                let mut mac = keyed.clone();
                mac.update_padded(io);
                black_box(mac.finalize());
            })
        }
        _ => return Err(usage.into()),
    };
    Ok(writeln!(std::io::stdout(), "{}", serde_json::json!({"hash_us": hash_us}))?)
}
