//! Stacks on the command line: no filter is lost, replaced or mixed with others by accident.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tamis(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
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
    let output = tamis(&["optimize", source, source, "-o", text(&empty)]);
    let is_stack = empty.is_dir() && fs::read_dir(&empty).unwrap().count() == 2;
    assert!(output.status.success() && is_stack, "{output:?}");
}
