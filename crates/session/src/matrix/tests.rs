//! Matrices without files or threads, with an environment in memory.

use tamis_abi::Arch;

use super::*;

const POLICY: &str = "arch x86_64\nlet fd_of: u32\ndefault errno(EPERM)\nallow read(fd == fd_of)\n";
const MATRIX: &str = "policy = 'folder/a.tamis'\n[option.log]\nfalse = {}\ntrue = { rules = 'allow write' }\n\
                      [option.idle]\na = { let.N = 1 }\nb = { let.N = 2 }\n[[exclude]]\nlog = 'false'\nidle = 'b'\n";

/// Files in memory.
struct Memory(&'static [(&'static str, &'static str)]);

impl Environment for Memory {
    fn read(&self, path: &str) -> Result<Input, Error> {
        let found = self.0.iter().find(|(name, _)| *name == path);
        let found = found.map(|(name, text)| Input::new(*name, *text));
        found.ok_or_else(|| Error::input(format!("cannot read {path}: not in memory")))
    }

    fn loader(&self, _: &[PathBuf]) -> Box<dyn Loader> {
        let files = self.0;
        Box::new(move |path: &str, from: &str| {
            let folder = std::path::Path::new(from).parent();
            let path = folder.unwrap_or("".as_ref()).join(path);
            let found = files
                .iter()
                .find(|(name, _)| path == std::path::Path::new(name));
            let found = found.map(|(name, text)| tamis_policy::loader::Loaded {
                name: (*name).to_owned(),
                text: (*text).to_owned(),
            });
            found.ok_or_else(|| format!("{} is not in memory", path.display()))
        })
    }
}

fn matrix(text: &str) -> LoadedMatrix {
    LoadedMatrix::read(Input::new("m.toml", text), true).unwrap()
}

fn options() -> LoadOptions {
    LoadOptions {
        keeps_variables: true,
        ..LoadOptions::new(Arch::X86_64)
    }
}

fn refused(text: &str, files: &'static [(&'static str, &'static str)]) -> String {
    let loaded = matrix(text);
    let chosen = loaded.choose(&[]).unwrap();
    let plan = Plan::read(&loaded, &chosen, &options(), &[], &Memory(files));
    plan.unwrap_err().to_string()
}

#[test]
fn combinations_that_mean_the_same_are_compiled_once() {
    const PROFILE: &str = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["chown"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_CHOWN"]}},
        {"names": ["read"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let loaded = matrix(
        "policy = 'a.json'\n[option.caps]\nnone = { cap = [] }\nown = { cap = ['CHOWN'] }\n\
         all = { cap = ['CHOWN', 'SYS_ADMIN'] }\n",
    );
    let memory = Memory(&[("a.json", PROFILE)]);
    let chosen = loaded.choose(&[]).unwrap();
    let plan = Plan::read(&loaded, &chosen, &options(), &[], &memory).unwrap();
    assert!(plan.warnings.iter().all(|own| own.diagnostics.is_empty()));
    let titles: Vec<&str> = plan.members.iter().map(|own| own.title.as_str()).collect();
    assert_eq!(titles, ["caps=none", "caps=own", "caps=all"]);
    let target = Target::default();
    let compiled = plan.compile(&loaded.matrix, &target, &memory).unwrap();
    assert_eq!(
        (compiled.numbers, compiled.filters.len()),
        (vec![0, 1, 1], 2)
    );
}

#[test]
fn what_the_caller_names_replaces_what_the_matrix_says_for_all() {
    const PROFILE: &str = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["read"], "action": "SCMP_ACT_ALLOW"}]}"#;
    let matrix = matrix(
        "policy = 'a.json'\ncap = ['SYS_ADMIN']\n[option.k]\nold = { kernel = '4.8' }\nnew = {}\n",
    );
    let memory = Memory(&[("a.json", PROFILE)]);
    let chosen = matrix.choose(&[]).unwrap();
    let longest = |list: &[&str]| {
        let mut options = options();
        options.named.list = list
            .iter()
            .map(|text| crate::Assignment::parse(text))
            .collect();
        let plan = Plan::read(&matrix, &chosen, &options, &[], &memory).unwrap();
        let compiled = plan
            .compile(&matrix.matrix, &Target::default(), &memory)
            .unwrap();
        let lengths = compiled
            .filters
            .iter()
            .map(|own| own.template().unbound().len());
        lengths.max().unwrap()
    };
    assert!(longest(&["cap="]) < longest(&[]));
}

#[test]
fn combinations_are_chosen_by_name() {
    let loaded = matrix(MATRIX);
    assert_eq!(loaded.choose(&[]).unwrap(), [[0, 0], [1, 0], [1, 1]]);
    let choose = |only: &[&str]| {
        let only: Vec<String> = only.iter().map(|text| (*text).to_owned()).collect();
        loaded.choose(&only).map_err(|error| error.to_string())
    };
    assert_eq!(choose(&["log=true", "idle=b"]), Ok(vec![vec![1, 1]]));
    assert_eq!(choose(&["idle=a", "idle=b"]).map(|all| all.len()), Ok(3));
    assert!(
        choose(&["log=false", "idle=b"])
            .unwrap_err()
            .contains("excludes all")
    );
    assert!(
        choose(&["lgo=true"])
            .unwrap_err()
            .contains("did you mean `log`?")
    );
    assert!(
        choose(&["log=ture"])
            .unwrap_err()
            .contains("did you mean `true`?")
    );
    for (index, values) in loaded.matrix.combinations().enumerate() {
        assert_eq!(loaded.matrix.index_of(&values), index);
    }
}

#[test]
fn mistakes_of_policies_and_settings_for_other_languages_are_errors() {
    let matrix = "policy = 'a.tamis'\n[option.a]\nx = { cap = [] }\ny = { cap = ['CHOWN'] }\n";
    let capabilities = refused(matrix, &[("a.tamis", POLICY)]);
    assert!(
        capabilities.contains("capabilities are for OCI profiles"),
        "{capabilities}"
    );
    assert!(refused(MATRIX, &[]).contains("cannot read folder/a.tamis"));
    let mistaken = refused(MATRIX, &[("folder/a.tamis", "allow raed\n")]);
    assert_eq!(
        mistaken.matches("unknown system call").count(),
        1,
        "{mistaken}"
    );
}

#[test]
fn what_is_no_matrix_is_named() {
    let read = |text: &str| LoadedMatrix::read(Input::new("m.toml", text), false);
    let error = read("allow read\n").unwrap_err().to_string();
    assert!(error.contains("this is not a matrix of options"), "{error}");
}
