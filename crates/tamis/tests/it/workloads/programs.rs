//! Programs print the same and exit alike with and without a policy, and call nothing that they need and it denies.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis_testkit::scratch::Scratch;
use tamis_testkit::skip::{self, Need};
use tamis_testkit::{child, seeds};

use super::{POLICIES, PYTHON, is_installed};
use crate::TAMIS;

/// A program of the matrix.
struct Program {
    /// Its file in `programs`, with the interpreter before it.
    interpreter: &'static str,
    file: &'static str,
    text: &'static str,
    /// The programs that it starts.
    needs: &'static [&'static str],
    networks: &'static [&'static str],
    nested: &'static str,
}

const EVERY: &[&str] = &["none", "unix", "proxy", "full"];

macro_rules! program {
    ($interpreter:expr, $file:literal, $needs:expr, $networks:expr, $nested:literal) => {
        Program {
            interpreter: $interpreter,
            file: $file,
            text: include_str!(concat!("programs/", $file)),
            needs: $needs,
            networks: $networks,
            nested: $nested,
        }
    };
}

/// They take a second each.
const QUICK: &[Program] = &[
    program!(PYTHON, "jobs.py", &["bash"], &["none"], "no"),
    program!(PYTHON, "asyncio_.py", &[], EVERY, "no"),
    program!("node", "server.js", &[], EVERY, "no"),
    program!("sh", "clone.sh", &["git", PYTHON], EVERY, "no"),
];

/// They build, install or draw.
const SLOW: &[Program] = &[
    program!("sh", "npm.sh", &["node", "npm"], EVERY, "no"),
    program!("sh", "cargo.sh", &["cargo"], &["none"], "no"),
    program!("sh", "go.sh", &["go"], EVERY, "no"),
    program!("sh", "java.sh", &["java"], EVERY, "no"),
    program!(
        "sh",
        "chromium.sh",
        &["chromium", "setpriv"],
        &["full"],
        "yes"
    ),
];

/// Denied calls from which the libraries fall back: C libraries from `clone3` to `clone`, libuv from io_uring to its
/// threads, resolvers and Go's network from families and protocols.
const FALLS_BACK: [&str; 3] = [
    "clone3 -> errno(38)",
    "io_uring_setup -> errno(38)",
    "socket -> errno(97)",
];

impl Program {
    /// The command in a folder, which the words before it start.
    fn command(&self, before: &[&str], network: &str, folder: &Path) -> Command {
        fs::write(folder.join(self.file), self.text).expect("a file");
        let words = [before, &[self.interpreter, self.file, network]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(folder);
        command.env("TMPDIR", folder).stdin(Stdio::null());
        command
    }

    /// What it prints, and its exit status.
    fn result(&self, before: &[&str], network: &str) -> String {
        let folder = Scratch::open_to_readers("workload").expect("a folder");
        let mut command = self.command(before, network, folder.path());
        let output = child::output(&mut command).expect("it starts");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = match output.status.success() {
            true => String::new(),
            false => String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        format!("{printed}{}\n{complaints}", output.status)
    }

    fn settings(&self, network: &str) -> String {
        format!("network={network},nested={}", self.nested)
    }

    fn is_here(&self) -> bool {
        self.needs.iter().all(|own| is_installed(own)) && is_installed(self.interpreter)
    }

    /// The values of `network` to try: all in a full run, else the strictest and the loosest.
    fn networks(&self) -> impl Iterator<Item = &'static str> {
        let last = self.networks.len() - 1;
        let is_tried = move |index: usize| seeds::is_full() || index == 0 || index == last;
        let networks = self.networks.iter().copied().enumerate();
        networks
            .filter(move |(index, _)| is_tried(*index))
            .map(|(_, network)| network)
    }

    /// Compares the results with and without the policies: each in a full run, else the first.
    fn compare(&self) {
        let policies = if seeds::is_full() { POLICIES.len() } else { 1 };
        for network in self.networks() {
            let alone = self.result(&["timeout", "300"], network);
            assert!(alone.contains("exit status: 0"), "{}: {alone}", self.file);
            for policy in &POLICIES[..policies] {
                let set = self.settings(network);
                let tamis = [TAMIS, "exec", "-q", "-p", policy, "--set", &set, "--"];
                let confined = self.result(&[&["timeout", "300"], &tamis[..]].concat(), network);
                assert_eq!(confined, alone, "{} under {policy} with {set}", self.file);
            }
        }
    }

    /// The calls of the free program that the policy would deny.
    fn denied(&self, network: &str) -> Vec<String> {
        let folder = Scratch::open_to_readers("recorded").expect("a folder");
        let set = self.settings(network);
        let compile = [
            "compile",
            "agent",
            "--emit",
            "rules",
            "--set",
            &set,
            "-o",
            "agent.rules",
        ];
        let compiled = Command::new(TAMIS)
            .args(compile)
            .current_dir(folder.path())
            .status();
        assert!(compiled.expect("it starts").success());
        let record = [TAMIS, "record", "--json", "-o", "profile.json"];
        let against = ["--against", "agent.rules", "--"];
        let before = [&["timeout", "300"], &record[..], &against].concat();
        let mut command = self.command(&before, network, folder.path());
        let output = child::output(&mut command).expect("it starts");
        let printed = String::from_utf8_lossy(&output.stderr);
        // The program's own messages stand before the document.
        let document = printed.find("{\n").map(|start| &printed[start..]);
        let document: Value = serde_json::from_str(document.unwrap_or_default())
            .unwrap_or_else(|error| panic!("{}: {error}: {printed}", self.file));
        let drift = document["drift"].as_array().expect("it compares").iter();
        drift
            .map(|own| format!("{} -> {}", own["call"], own["action"]).replace('"', ""))
            .collect()
    }

    /// Compares what is denied with the calls from which programs fall back.
    fn judge(&self) {
        for network in self.networks() {
            for denied in self.denied(network) {
                let is_expected = FALLS_BACK.contains(&denied.as_str());
                assert!(is_expected, "{} with {network}: {denied}", self.file);
            }
        }
    }
}

/// Runs a judge on the programs that are here. The test is ignored if others are missing.
#[track_caller]
fn each(programs: &[Program], judge: fn(&Program)) {
    skip::unless_live();
    let (here, missing): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|own| own.is_here());
    here.into_iter().for_each(judge);
    if let Some(first) = missing.first() {
        let reason = format!(
            "{} passed, but for {}",
            programs.len() - missing.len(),
            first.file
        );
        skip::because(Need::Workloads, reason);
    }
}

/// Ends the test outside of `.ci/run full`.
#[track_caller]
fn unless_slow() {
    if !seeds::is_full() {
        skip::because(
            Need::Judge,
            "npm, cargo, go, java and chromium take minutes",
        );
    }
}

#[test]
fn programs_work_as_without_a_policy() {
    each(QUICK, Program::compare);
}

#[test]
fn nothing_is_denied_that_programs_need() {
    each(QUICK, Program::judge);
}

#[test]
fn slow_programs_work_as_without_a_policy() {
    unless_slow();
    each(SLOW, Program::compare);
}

#[test]
fn nothing_is_denied_that_slow_programs_need() {
    unless_slow();
    each(SLOW, Program::judge);
}
