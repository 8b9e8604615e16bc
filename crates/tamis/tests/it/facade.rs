//! The library's way from a policy to an installed filter.

use tamis::{Arch, Error, Policy, install};
use tamis_abi::host;
use tamis_policy::loader::NoIncludes;
use tamis_session::{Input, LoadOptions};
use tamis_testkit::skip;

#[test]
fn a_policy_in_any_language_is_for_the_program_that_reads_it() {
    let native = host::arch().expect("a known architecture");
    let texts = [
        "default errno(EPERM)\nallow read",
        r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]}"#,
        "ALLOW { read } DEFAULT ERRNO(1)",
        "[Service]\nSystemCallFilter=read\nSystemCallErrorNumber=EPERM\n",
    ];
    for text in texts {
        let filter = Policy::from_text("inline", text)
            .unwrap()
            .compile()
            .unwrap();
        assert_eq!(filter.arches()[0], native, "{text}");
        assert!(filter.program().is_ok());
    }
}

#[test]
fn warnings_and_mistakes_name_their_places() {
    let misspelt = r#"{"defaultAction": "SCMP_ACT_ERRNO",
        "syscalls": [{"names": ["raed"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let filter = Policy::from_text("profile.json", misspelt)
        .unwrap()
        .compile()
        .unwrap();
    let warnings: Vec<String> = filter.warnings().map(|own| own.to_string()).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("profile.json:2:"));
    let mistake = Policy::from_text("inline", "allow raed").unwrap_err();
    assert!(mistake.to_string().contains("did you mean `read`?"));
    let program = Policy::from_text("inline.asm", "ret #allow").unwrap_err();
    assert!(program.to_string().contains("is a program, not a policy"));
}

#[test]
fn a_filter_without_rules_for_this_program_is_not_installed() {
    let input = Input::new("inline", "default allow");
    let options = LoadOptions::for_program(Arch::Sheb);
    let policy = Policy::read(input, &options, &mut NoIncludes).unwrap();
    let refusal = install(&policy.compile().unwrap()).unwrap_err();
    assert!(matches!(refusal, Error::Arch { filter, .. } if filter == [Arch::Sheb]));
}

/// The filter is that of one thread, which ends with the test.
#[test]
fn an_installed_filter_answers() {
    skip::unless_kernel();
    let text = "default allow\nerrno(EXDEV) getppid";
    let filter = Policy::from_text("inline", text)
        .unwrap()
        .compile()
        .unwrap();
    let answer = std::thread::spawn(move || {
        install(&filter).unwrap();
        // SAFETY: getppid takes nothing and changes nothing.
        unsafe { libc::syscall(libc::SYS_getppid) }
    });
    assert_eq!(answer.join().unwrap(), -1);
}

/// Whoever adds a name here promises it to the users of the library.
#[test]
fn the_library_promises_these_names() {
    let lines = include_str!("../../src/lib.rs").lines();
    let exports = lines.filter_map(|line| line.strip_prefix("pub "));
    let paths = exports.map(|export| export.strip_prefix("use ").unwrap_or(export));
    let mut names: Vec<&str> = paths
        .flat_map(|path| {
            let last = path
                .trim_end_matches(';')
                .rsplit("::")
                .next()
                .unwrap_or(path);
            last.trim_matches(['{', '}']).split(", ")
        })
        .collect();
    names.sort_unstable();
    let promised = [
        "Answer",
        "Arch",
        "Call",
        "CompiledPolicy",
        "Error",
        "Install",
        "Policy",
        "Program",
        "build",
        "include_policy",
        "install",
        "install_program",
        "install_with",
        "supervise",
    ];
    assert_eq!(names, promised);
}
