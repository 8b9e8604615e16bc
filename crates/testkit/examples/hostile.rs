//! Writes the hostile inputs into a folder: `cargo run -p tamis-testkit --example hostile -- DIR`.

use std::path::PathBuf;
use std::{env, fs};

use tamis_testkit::generate::hostile::{self, texts};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).expect("the folder to write to"));
    fs::create_dir_all(&folder)?;
    for (index, text) in texts::all(15).into_iter().enumerate() {
        println!("{index:02}.{}\t{}", text.kind, text.name);
        fs::write(folder.join(format!("{index:02}.{}", text.kind)), text.bytes)?;
    }
    for (index, hostile) in hostile::all().into_iter().enumerate() {
        for (side, bytes) in ["left", "right"].into_iter().zip(hostile.sides) {
            let name = format!("{index:02}-{side}.{}", hostile.extension);
            println!("{name}\t{}", hostile.name);
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
