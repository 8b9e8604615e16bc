//! The results of a socket filter for packets: `tamis-lab packets eval`.

use std::fmt;

use serde::Serialize;

use crate::entry::counted;

/// The results of a socket filter for packets.
#[derive(Serialize)]
pub struct PacketsReport {
    /// The engine.
    pub engine: String,
    /// The number of accepted packets.
    pub accepted: usize,
    pub packets: Vec<PacketEntry>,
}

/// The return value for one packet.
#[derive(Serialize)]
pub struct PacketEntry {
    pub length_bytes: u32,
    pub ret: u32,
    pub steps: u32,
}

impl PacketsReport {
    /// The report of packets, each as its length, return value and number of steps.
    pub fn new(engine: String, runs: &[[u32; 3]]) -> PacketsReport {
        let entry = |[length_bytes, ret, steps]: &[u32; 3]| PacketEntry {
            length_bytes: *length_bytes,
            ret: *ret,
            steps: *steps,
        };
        let packets: Vec<PacketEntry> = runs.iter().map(entry).collect();
        PacketsReport {
            engine,
            accepted: packets.iter().filter(|packet| packet.ret != 0).count(),
            packets,
        }
    }
}

impl fmt::Display for PacketsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, packet) in self.packets.iter().enumerate() {
            let number = index + 1;
            let length_bytes = packet.length_bytes;
            let kept = match packet.ret {
                0 => "drop".to_owned(),
                ret => format!("accept({ret})"),
            };
            let steps = counted(packet.steps, "step");
            writeln!(
                f,
                "packet {number}, {length_bytes} bytes -> {kept}  ({steps})"
            )?;
        }
        let all = counted(self.packets.len(), "packet");
        writeln!(f, "{} of {all} accepted, on {}", self.accepted, self.engine)
    }
}
