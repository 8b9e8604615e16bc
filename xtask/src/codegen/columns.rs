//! The columns of the data files: architectures with equal numbers and constants share one.

use std::fmt::Write;

use anyhow::{Result, ensure};

/// One column.
pub(super) struct Column {
    /// The name in the data files.
    pub(super) name: &'static str,
    /// The variants of `Arch` in the column.
    pub(super) archs: &'static [&'static str],
    /// The module of linux-raw-sys.
    pub(super) raw: Option<&'static str>,
    /// The table of `system-calls`.
    pub(super) series: &'static str,
}

const fn column(
    name: &'static str,
    archs: &'static [&'static str],
    raw: Option<&'static str>,
    series: &'static str,
) -> Column {
    Column {
        name,
        archs,
        raw,
        series,
    }
}

/// All columns in the order of the data files.
pub(super) const COLUMNS: [Column; 19] = [
    column("x86_64", &["X86_64"], Some("x86_64"), "x86_64"),
    column("x86", &["X86"], Some("x86"), "i386"),
    column("x32", &["X32"], Some("x32"), "x32"),
    column("aarch64", &["Aarch64"], Some("aarch64"), "arm64"),
    column("arm", &["Arm"], Some("arm"), "arm"),
    column("riscv64", &["Riscv64"], Some("riscv64"), "riscv64"),
    column("riscv32", &["Riscv32"], Some("riscv32"), "riscv32"),
    column(
        "loongarch64",
        &["Loongarch64"],
        Some("loongarch64"),
        "loongarch64",
    ),
    column(
        "ppc64",
        &["Ppc64", "Ppc64le"],
        Some("powerpc64"),
        "powerpc64",
    ),
    column("ppc", &["Ppc"], Some("powerpc"), "powerpc"),
    column("s390x", &["S390x"], Some("s390x"), "s390x"),
    column("s390", &["S390"], None, "s390"),
    column("mips", &["Mips", "Mipsel"], Some("mips"), "mipso32"),
    column("mips64", &["Mips64", "Mipsel64"], Some("mips64"), "mips64"),
    column(
        "mips64n32",
        &["Mips64n32", "Mipsel64n32"],
        None,
        "mips64n32",
    ),
    column("parisc", &["Parisc"], None, "parisc"),
    column("parisc64", &["Parisc64"], None, "parisc64"),
    column("m68k", &["M68k"], Some("m68k"), "m68k"),
    column("sh", &["Sh", "Sheb"], None, "sh"),
];

/// The attribute of an item of a column, on a line of its own.
pub(super) fn attribute(column: &Column) -> String {
    let condition = column.condition();
    condition.map_or_else(String::new, |condition| format!("#[cfg({condition})]\n"))
}

/// Checks that a header line names `first` and then all columns.
pub(super) fn check_header(header: &[&str], first: &[&'static str]) -> Result<()> {
    let names = COLUMNS.iter().map(|column| column.name);
    let expected = first.iter().copied().chain(names);
    ensure!(header.iter().copied().eq(expected), "header {header:?}");
    Ok(())
}

impl Column {
    /// The attribute of code for the column: it is there with the feature `architectures`, on machines that execute its
    /// calls, and for the machines that most programs run on always.
    pub(super) fn condition(&self) -> Option<String> {
        let machines: &[&str] = match self.name {
            "x86_64" | "x86" | "x32" | "aarch64" | "arm" => return None,
            "riscv64" | "riscv32" => &["riscv32", "riscv64"],
            "loongarch64" => &["loongarch64"],
            "ppc64" | "ppc" => &["powerpc", "powerpc64"],
            "s390x" | "s390" => &["s390x"],
            "mips" | "mips64" | "mips64n32" => &["mips", "mips64"],
            "m68k" => &["m68k"],
            _ => &[],
        };
        let feature = "feature = \"architectures\"";
        let machines = machines
            .iter()
            .map(|name| format!(", target_arch = \"{name}\""));
        let machines: String = machines.collect();
        Some(match machines.as_str() {
            "" => feature.to_owned(),
            _ => format!("any({feature}{machines})"),
        })
    }
}

/// A Rust function that maps an architecture to the static of its column, if that is there.
pub(super) fn table_of_arch(name: &str, table_type: &str) -> String {
    let mut text = format!(
        "pub(crate) const fn {name}(arch: Arch) -> Option<&'static {table_type}> {{\n    match arch {{\n"
    );
    for column in &COLUMNS {
        let archs: Vec<String> = column
            .archs
            .iter()
            .map(|arch| format!("Arch::{arch}"))
            .collect();
        let table = column.name.to_uppercase();
        let archs = archs.join(" | ");
        match column.condition() {
            None => writeln!(text, "        {archs} => Some(&{table}),").unwrap(),
            Some(condition) => {
                writeln!(
                    text,
                    "        #[cfg({condition})]\n        {archs} => Some(&{table}),"
                )
                .unwrap();
                writeln!(
                    text,
                    "        #[cfg(not({condition}))]\n        {archs} => None,"
                )
                .unwrap();
            }
        }
    }
    text.push_str("    }\n}\n");
    text
}
