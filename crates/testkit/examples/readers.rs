//! Writes the files of all readers into folders of DIR, with the command that reads them:
//! `cargo run -p tamis-testkit --example readers -- DIR BYTES`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::{env, fs};

use tamis_testkit::generate::hostile::readers;

fn main() -> std::io::Result<()> {
    let mut args = env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("the folder to write to"));
    let bytes = args.next().and_then(|bytes| bytes.parse().ok());
    for (index, reading) in readers::all(bytes.unwrap_or(15_000_000)).iter().enumerate() {
        let own = folder.join(format!("{index:03}"));
        for (name, bytes) in &reading.files {
            let path = own.join(name);
            fs::create_dir_all(path.parent().expect("it is in the folder"))?;
            fs::write(&path, bytes)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        println!(
            "{index:03}\t{}\t{}\t{}",
            reading.size_bytes(),
            reading.name,
            reading.args.join(" ")
        );
    }
    Ok(())
}
