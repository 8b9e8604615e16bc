//! The interpreter gives the answers that come with gVisor's programs.

use tamis_bpf::{Program, interp};
use tamis_testkit::corpus;

/// A record: the sixteen words of an input, and the answer.
const WORDS: usize = 17;

fn vectors(name: &str) -> Vec<([u32; 16], u32)> {
    let path = corpus::path(name).expect("the listed file is there");
    let bytes = std::fs::read(path).expect("the file can be read");
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let record = |words: &[u32]| {
        let image = words[..16].try_into().expect("sixteen words");
        (image, words[16])
    };
    words.chunks_exact(WORDS).map(record).collect()
}

#[test]
fn on_all_vectors_of_the_corpus() {
    let Some(names) = corpus::files("gvisor", ".vectors") else {
        return;
    };
    let mut checks = 0;
    for name in names {
        let vectors = vectors(&name);
        assert!(!vectors.is_empty(), "{name}");
        for level in ["unopt", "opt"] {
            let file = name.replace(".vectors", &format!(".{level}.bpf"));
            let Some(insns) = corpus::insns(&file) else {
                continue;
            };
            let program = Program::new(insns).expect("the corpus holds programs");
            for (image, expected) in &vectors {
                let ret = interp::run(&program, image).ret;
                assert_eq!(ret, *expected, "{file} on {image:x?}");
                checks += 1;
            }
        }
    }
    println!("{checks} answers");
}
