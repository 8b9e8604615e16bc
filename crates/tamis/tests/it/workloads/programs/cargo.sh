# cargo builds and tests a crate.
mkdir -p crate/src
printf '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' >crate/Cargo.toml
cat >crate/src/main.rs <<'P'
fn main() { println!("{}", std::thread::spawn(|| 6 * 7).join().unwrap()); }
#[test] fn passes() { assert_eq!(1 + 1, 2); }
P
export CARGO_TARGET_DIR=$PWD/target
unset CARGO_ENCODED_RUSTFLAGS RUSTFLAGS
"${CARGO:-cargo}" run -q --offline --manifest-path crate/Cargo.toml; echo $?
"${CARGO:-cargo}" test -q --offline --manifest-path crate/Cargo.toml >/dev/null 2>&1; echo $?
