//! Stacks on the command line: no filter is lost, replaced or mixed with others by accident.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis_testkit::toolchains::stderr_text;

fn tamis(args: &[&str]) -> Output {
    let mut command = Command::new(crate::TAMIS);
    command.args(args).output().expect("tamis starts")
}

/// An empty folder with two filters in its folder `stack`.
fn stack(name: &str) -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("stacks")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    let stack = folder.join("stack");
    fs::create_dir_all(&stack).unwrap();
    let allow = [6, 0, 0, 0, 0, 0, 0xff, 0x7f];
    let refuse = [6, 0, 0, 0, 1, 0, 5, 0];
    fs::write(stack.join("00.bpf"), allow).unwrap();
    fs::write(stack.join("01.bpf"), refuse).unwrap();
    (folder, stack)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

#[test]
fn a_filter_without_a_name_is_wrong_usage() {
    let (_, stack) = stack("nameless");
    let allow = stack.join("00.bpf");
    let one_of_two = format!("{},", text(&allow));
    for list in [",", " , ", one_of_two.as_str()] {
        for args in [
            vec!["prove", list, list],
            vec!["diff", list, list],
            vec!["optimize", list],
        ] {
            assert_eq!(tamis(&args).status.code(), Some(2), "{args:?}");
        }
    }
}

#[test]
fn optimising_replaces_no_filter_of_the_stack() {
    let (_, stack) = stack("replaced");
    let newest = stack.join("01.bpf");
    let before = fs::read(&newest).unwrap();
    let list = format!("{},{}", text(&stack.join("00.bpf")), text(&newest));
    for input in [text(&stack), &list] {
        let output = tamis(&["optimize", input, "-o", text(&newest)]);
        assert_eq!(output.status.code(), Some(2), "{input}");
        assert_eq!(fs::read(&newest).unwrap(), before);
    }
}

#[test]
fn filters_are_not_written_among_others() {
    let (folder, stack) = stack("mixed");
    // Not to be fused, because their answers are computed.
    let asm = "ld [16]\nmul #3\nand #0xff\nor #0x50000\nret a\n";
    let source = folder.join("computed.asm");
    fs::write(&source, asm).unwrap();
    let source = text(&source);
    fs::write(stack.join("07.bpf"), [6, 0, 0, 0, 0, 0, 0xff, 0x7f]).unwrap();
    let output = tamis(&["optimize", source, source, "-o", text(&stack)]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let empty = folder.join("empty");
    // A path that may be meant as a file doesn't become a folder.
    let output = tamis(&["optimize", source, source, "-o", text(&empty)]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!empty.exists());
    let output = tamis(&[
        "optimize",
        source,
        source,
        "-o",
        &format!("{}/", text(&empty)),
    ]);
    let is_stack = empty.is_dir() && fs::read_dir(&empty).unwrap().count() == 2;
    assert!(output.status.success() && is_stack, "{output:?}");
}

/// Calls that each check values of their own are more than one filter can hold.
#[test]
fn what_does_not_fit_is_split_into_a_folder() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stacks/split");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut rules =
        String::from("ruleset bad-arch kill_process\nsection x86_64 default errno(1)\n");
    for nr in 0..12_u32 {
        let values =
            (1..=300_u32).map(|n| format!("{:#x}", (nr * 300 + n).wrapping_mul(0x9e37_79b1)));
        let values: Vec<String> = values.collect();
        rules.push_str(&format!(
            "  {nr} if arg1.low in {{{}}}: allow\n",
            values.join(", ")
        ));
    }
    let policy = folder.join("large.rules");
    fs::write(&policy, rules).unwrap();
    let alone = tamis(&["optimize", self::text(&policy)]);
    assert_eq!(alone.status.code(), Some(3), "{}", stderr_text(&alone));
    let parts = format!("{}/parts/", self::text(&folder));
    let split = tamis(&["optimize", self::text(&policy), "--split", "-o", &parts]);
    assert_eq!(split.status.code(), Some(0), "{}", stderr_text(&split));
    let made: Vec<PathBuf> = fs::read_dir(&parts)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(made.len() > 1);
    for path in &made {
        assert!(fs::metadata(path).unwrap().len() <= 8 * 4096);
    }
    let fits = folder.join("fits.tamis");
    fs::write(&fits, "arch x86_64\ndefault errno(EPERM)\nallow read\n").unwrap();
    let one = format!("{}/one/", self::text(&folder));
    let output = tamis(&["optimize", self::text(&fits), "--split", "-o", &one]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert!(Path::new(&one).join("00.bpf").exists());
}
