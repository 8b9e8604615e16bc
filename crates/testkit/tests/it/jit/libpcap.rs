//! libpcap's programs for expressions have the results of libpcap's interpreter.

use tamis_bpf::packet::{Packet, Program};
use tamis_jit::{Options, Socket};
use tamis_pcap::Libpcap;
use tamis_testkit::generate::packet::bytes;
use tamis_testkit::rng::Rng;
use tamis_testkit::seeds;
use tamis_testkit::skip::{self, Need};

use super::agreement::unless_jit;

const EXPRESSIONS: [&str; 12] = [
    "port 22",
    "tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)",
    "host 10.0.0.1",
    "net 10.0.0.0/8 and not udp",
    "ip6 and tcp dst portrange 1000-2000",
    "arp or rarp",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "icmp[icmptype] = icmp-echo",
    "len > 40 and ether[0] & 1 = 0",
    "udp[8:4] / 3 > 7 and udp[10:2] * 5 < 1000",
    "ether proto 0x88a8 or ip proto 47",
    "ip[6:2] & 0x1fff != 0 or greater 60",
];

#[test]
fn real_expressions_return_the_same() {
    let libpcap = Libpcap::open().unwrap_or_else(|reason| skip::because(Need::Peers, reason));
    unless_jit();
    let mut matches = 0;
    for (seed, expression) in (0..).zip(EXPRESSIONS) {
        let insns = libpcap.compile(expression).expect("a legal expression");
        let program = Program::new(insns).expect("libpcap's programs are legal");
        let compiled = Socket::compile(&program, &Options::default()).expect("short enough");
        let mut rng = Rng::new(seed);
        for _ in 0..seeds::share(5000) {
            let mut bytes = bytes(&mut rng, &program);
            if bytes.len() > 24 && rng.chance(3, 4) {
                // IPv4 without options, mostly of TCP.
                bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                bytes[23] = *rng.choose(&[6, 6, 17, 1]);
            }
            let packet = Packet::new(&bytes[..]);
            let ret = compiled.run(&packet);
            let theirs = libpcap.run(&program, &bytes, packet.len_bytes);
            assert_eq!(ret, theirs, "{expression}: {bytes:x?}");
            matches += u32::from(ret != 0);
        }
    }
    println!("{matches} matches");
    assert!(matches > seeds::least(5000));
}
