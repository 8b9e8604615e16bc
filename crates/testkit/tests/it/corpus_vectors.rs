//! The interpreter returns the values of the vectors of gVisor's programs.

use tamis_bpf::interp;
use tamis_testkit::corpus::{self, gvisor};

#[test]
fn on_all_vectors_of_the_corpus() {
    let names = corpus::files("gvisor", ".vectors");
    let mut checks = 0;
    for name in names {
        let vectors = gvisor::vectors(&name);
        assert!(!vectors.is_empty(), "{name}");
        for level in ["unopt", "opt"] {
            let file = name.replace(".vectors", &format!(".{level}.bpf"));
            let program = corpus::program(&file);
            for vector in &vectors {
                let ret = interp::run(&program, &vector.data).ret;
                assert_eq!(ret, vector.ret, "{file} on {:x?}", vector.data);
                checks += 1;
            }
        }
    }
    println!("{checks} answers");
}
