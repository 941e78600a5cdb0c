//! A client of few instructions: one connection, `depth` random reads always outstanding, many PDUs per system call.
//! `cargo run --release -p linerate-iscsi-target --example blast -- ADDR IQN DEPTH BYTES SECONDS SPAN_MIB`
//!
//! It keeps no statistics and checks only lengths, so its own cost is small.

#![allow(clippy::print_stdout)] // a program talks to its user

use linerate_io::system;
use linerate_iscsi_proto::{
    frame::Framer,
    pdu::{BHS_BYTES, LoginRequest, Lun, ScsiCommand, Stage, TaskAttribute, data_len},
};
use std::{
    error::Error,
    io::{Read, Write},
    net::TcpStream,
};

struct Blast {
    socket: TcpStream,
    cmd_sn: u32,
    random: u64,
    outgoing: Vec<u8>,
    bytes: u32,
    spots: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [addr, iqn, depth, bytes, seconds, span_mib] = args.as_slice() else {
        return Err("usage: blast ADDR IQN DEPTH BYTES SECONDS SPAN_MIB".into());
    };
    let (depth, bytes, seconds): (u32, u32, f64) = (depth.parse()?, bytes.parse()?, seconds.parse()?);
    let socket = TcpStream::connect(addr)?;
    socket.set_nodelay(true)?;
    let spots = (span_mib.parse::<u64>()? << 20) as u32 / bytes;
    let mut blast = Blast { socket, cmd_sn: 1, random: 7, outgoing: Vec::new(), bytes, spots };
    blast.login(iqn)?;
    for _ in 0..depth {
        blast.read();
    }
    blast.run(seconds)
}

impl Blast {
    fn login(&mut self, iqn: &str) -> Result<(), Box<dyn Error>> {
        let text = format!(
            "InitiatorName=iqn.2026-11.lab.linerate:blast\0TargetName={iqn}\0MaxRecvDataSegmentLength=1048576\0"
        );
        let request = LoginRequest {
            transit: true,
            cont: false,
            current: Stage::Operational,
            next: Stage::FullFeature,
            version_max: 0,
            version_min: 0,
            isid: [0x80, 0, 0, 0, 0, std::process::id() as u8],
            tsih: 0,
            itt: 0,
            cid: 0,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
            data_len: text.len() as u32,
        };
        let mut bhs = [0; BHS_BYTES];
        request.emit(&mut bhs);
        Framer::default().write(&bhs, text.as_bytes(), &mut self.outgoing);
        self.socket.write_all(&self.outgoing)?;
        self.outgoing.clear();
        self.skip_pdu()?;
        // A command that may fail gets the unit attention of the new nexus.
        for _ in 0..3 {
            self.command([0; 16], 0);
            self.socket.write_all(&self.outgoing)?;
            self.outgoing.clear();
            self.skip_pdu()?;
        }
        Ok(())
    }

    fn skip_pdu(&mut self) -> Result<(), Box<dyn Error>> {
        let mut bhs = [0; BHS_BYTES];
        self.socket.read_exact(&mut bhs)?;
        let mut data = vec![0; data_len(&bhs).next_multiple_of(4) as usize];
        self.socket.read_exact(&mut data)?;
        Ok(())
    }

    fn command(&mut self, cdb: [u8; 16], expected_len: u32) {
        let command = ScsiCommand {
            immediate: false,
            final_pdu: true,
            read: expected_len > 0,
            write: false,
            attribute: TaskAttribute::Simple,
            lun: Lun(0),
            itt: self.cmd_sn,
            expected_len,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: 0,
            cdb,
            ahs_len: 0,
            data_len: 0,
        };
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        let mut bhs = [0; BHS_BYTES];
        command.emit(&mut bhs);
        self.outgoing.extend_from_slice(&bhs);
    }

    fn read(&mut self) {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spot = ((self.random >> 32) * u64::from(self.spots)) >> 32;
        let mut cdb = [0; 16];
        cdb[0] = 0x28;
        cdb[2..6].copy_from_slice(&(spot as u32 * (self.bytes / 512)).to_be_bytes());
        cdb[7..9].copy_from_slice(&((self.bytes / 512) as u16).to_be_bytes());
        self.command(cdb, self.bytes);
    }

    fn run(&mut self, seconds: f64) -> Result<(), Box<dyn Error>> {
        let answer = BHS_BYTES + self.bytes as usize;
        let mut buffer = vec![0; 1 << 20];
        let (mut partial, mut done, mut reads) = (0, 0_u64, 0_u64);
        let (began, cpu) = (system::now_ns(), system::process_cpu()?);
        loop {
            self.socket.write_all(&self.outgoing)?;
            self.outgoing.clear();
            let count = self.socket.read(&mut buffer)?;
            if count == 0 {
                return Err("the array closed the connection".into());
            }
            reads += 1;
            partial += count;
            while partial >= answer {
                partial -= answer;
                done += 1;
                self.read();
            }
            let elapsed_s = (system::now_ns() - began) as f64 / 1e9;
            if elapsed_s >= seconds {
                let used = system::process_cpu()?;
                let cpu_us = used.user_us + used.system_us - cpu.user_us - cpu.system_us;
                println!(
                    "{:.0} IOPS, {:.1} MB/s, client {:.2} us CPU per I/O, {:.1} I/Os per read",
                    done as f64 / elapsed_s,
                    done as f64 * f64::from(self.bytes) / elapsed_s / 1e6,
                    cpu_us as f64 / done as f64,
                    done as f64 / reads as f64,
                );
                return Ok(());
            }
        }
    }
}
