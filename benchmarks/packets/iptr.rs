//! Every packet: iptr-decoder counts them by kind, with the last IP.
//!
//!     iptr check FOLDER
//!     iptr time FOLDER SECONDS
//!
//! FOLDER is what common/page_cache.cpp writes. Prints one JSON object, as the other contestants do.

use iptr_decoder::utils::reconstruct_ip_and_update_last;
use iptr_decoder::{DecodeOptions, DecoderContext, HandlePacket, IpReconstructionPattern, PtwPayload};
use std::convert::Infallible;
use std::num::NonZero;
use std::time::Instant;

const MOST_ROUNDS: usize = 400;

/// Kinds in the order of packets/counts.cpp. PAD is left out.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Kind {
    Psb,
    PsbEnd,
    Tnt8,
    Tnt64,
    Tip,
    TipPge,
    TipPgd,
    Fup,
    Pip,
    Vmcs,
    Mode,
    Tsc,
    Mtc,
    Tma,
    Cyc,
    Cbr,
    Ovf,
    Other,
    Count,
}

#[derive(Default)]
struct Counter {
    counts: [u64; Kind::Count as usize],
    last_ip: u64,
}

impl Counter {
    #[inline(always)]
    fn add(&mut self, kind: Kind) -> Result<(), Infallible> {
        self.counts[kind as usize] += 1;
        Ok(())
    }

    #[inline(always)]
    fn add_ip(&mut self, kind: Kind, pattern: IpReconstructionPattern) -> Result<(), Infallible> {
        reconstruct_ip_and_update_last(&mut self.last_ip, pattern);
        self.add(kind)
    }
}

/// Handlers that have other arguments than the context.
macro_rules! count {
    ($($name:ident($($argument:ident: $of:ty),*) $kind:ident)*) => {
        $(fn $name(&mut self, _: &DecoderContext $(, $argument: $of)*) -> Result<(), Infallible> {
            $(let _ = $argument;)*
            self.add(Kind::$kind)
        })*
    };
}

impl HandlePacket for Counter {
    type Error = Infallible;

    fn at_decode_begin(&mut self) -> Result<(), Infallible> {
        *self = Counter::default();
        Ok(())
    }

    fn on_psb_packet(&mut self, _: &DecoderContext) -> Result<(), Infallible> {
        self.last_ip = 0;
        self.add(Kind::Psb)
    }

    fn on_tip_packet(&mut self, _: &DecoderContext, ip: IpReconstructionPattern) -> Result<(), Infallible> {
        self.add_ip(Kind::Tip, ip)
    }

    fn on_tip_pge_packet(&mut self, _: &DecoderContext, ip: IpReconstructionPattern) -> Result<(), Infallible> {
        self.add_ip(Kind::TipPge, ip)
    }

    fn on_tip_pgd_packet(&mut self, _: &DecoderContext, ip: IpReconstructionPattern) -> Result<(), Infallible> {
        self.add_ip(Kind::TipPgd, ip)
    }

    fn on_fup_packet(&mut self, _: &DecoderContext, ip: IpReconstructionPattern) -> Result<(), Infallible> {
        self.add_ip(Kind::Fup, ip)
    }

    count! {
        on_psbend_packet() PsbEnd
        on_short_tnt_packet(byte: NonZero<u8>, highest: u32) Tnt8
        on_long_tnt_packet(bytes: NonZero<u64>, highest: u32) Tnt64
        on_pip_packet(cr3: u64, non_root: bool) Pip
        on_vmcs_packet(pointer: u64) Vmcs
        on_mode_packet(leaf: u8, mode: u8) Mode
        on_tsc_packet(value: u64) Tsc
        on_mtc_packet(counter: u8) Mtc
        on_tma_packet(counter: u16, fast: u8, bit: bool) Tma
        on_cyc_packet(bytes: &[u8]) Cyc
        on_cbr_packet(ratio: u8) Cbr
        on_ovf_packet() Ovf
        on_trace_stop_packet() Other
        on_mnt_packet(payload: u64) Other
        on_exstop_packet(ip: bool) Other
        on_ptw_packet(ip: bool, payload: PtwPayload) Other
        on_mwait_packet(hints: u8, extensions: u8) Other
        on_pwre_packet(hardware: bool, state: u8, sub_state: u8) Other
        on_pwrx_packet(last: u8, deepest: u8, reason: u8) Other
        on_evd_packet(kind: u8, payload: u64) Other
        on_cfe_packet(ip: bool, kind: u8, vector: u8) Other
        on_bbp_packet(size: bool, kind: u8) Other
        on_bip_packet(id: u8, payload: &[u8], kind: u8) Other
        on_bep_packet(ip: bool) Other
    }
}

fn run(stream: &[u8], counter: &mut Counter) {
    if let Err(error) = iptr_decoder::decode(stream, DecodeOptions::default(), counter) {
        eprintln!("iptr cannot decode the trace: {error}");
        std::process::exit(3);
    }
}

/// FNV-1a of the counts and of the last IP.
fn digest(counter: &Counter) -> u64 {
    let words = counter.counts.iter().chain(std::iter::once(&counter.last_ip));
    words.fold(0xcbf29ce484222325, |value, word| (value ^ word).wrapping_mul(0x100000001b3))
}

/// Seconds of the process on processors.
fn cpu_seconds() -> f64 {
    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Time) -> i32;
    }
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: `time` has the layout of a timespec of 64-bit Linux.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.seconds as f64 + time.nanoseconds as f64 * 1e-9
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let (folder, seconds) = match words[..] {
        ["check", folder] => (folder, None),
        ["time", folder, seconds] => (folder, seconds.parse::<f64>().ok()),
        _ => {
            eprintln!("usage: iptr check FOLDER | time FOLDER SECONDS");
            std::process::exit(2);
        }
    };
    let stream = std::fs::read(format!("{folder}/trace")).expect("the folder has a file `trace`");
    let mut counter = Counter::default();
    let mut timing = String::new();
    if let Some(seconds) = seconds {
        let mut rounds = Vec::new();
        let begin = Instant::now();
        while rounds.len() < 2 || (rounds.len() < MOST_ROUNDS && begin.elapsed().as_secs_f64() < seconds) {
            let (wall, cpu) = (Instant::now(), cpu_seconds());
            run(&stream, &mut counter);
            let cpu_end = cpu_seconds();
            rounds.push(format!("[{:.9}, {:.9}]", wall.elapsed().as_secs_f64(), cpu_end - cpu));
        }
        timing = format!("\"bytes\": {}, \"rounds\": [{}], ", stream.len(), rounds.join(", "));
    } else {
        run(&stream, &mut counter);
    }
    let rows: u64 = counter.counts.iter().sum();
    println!(
        "{{{timing}\"rows\": {rows}, \"errors\": 0, \"sum\": \"0\", \"digest\": \"{:016x}\"}}",
        digest(&counter)
    );
}
