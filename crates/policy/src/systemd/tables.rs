//! The tables in `data/`: systemd's sets of calls and its directives, each with the releases that have it.
//!
//! A row has the first main release with its names, or a range of releases if it is uncertain. Stable branches get
//! names later than their main release; the exact release is known only for the inspected sources. So a name is in a
//! release certainly, possibly or not at all ([`Membership`]), and readers choose the stricter case.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::version::{PointRelease, SystemdVersion};

const SETS: &str = include_str!("../../data/systemd-sets.tsv");
const DIRECTIVES: &str = include_str!("../../data/systemd-directives.tsv");

/// The sections with the directives of a template.
const TEMPLATES: [(&str, &[&str]); 3] = [
    ("exec-common", &["Service", "Socket", "Mount", "Swap"]),
    (
        "cgroup-common",
        &["Service", "Socket", "Mount", "Swap", "Slice", "Scope"],
    ),
    (
        "kill-common",
        &["Service", "Socket", "Mount", "Swap", "Scope"],
    ),
];

/// The names of errnos in systemd: those of the C library's `<errno.h>`, without the kernel's internal ones.
const ERRNOS: &str = "\
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG \
    EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED \
    ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN \
    EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED \
    EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX ELIBSCN \
    ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET \
    ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK \
    ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN \
    ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP \
    EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG \
    EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE \
    ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL";

/// Whether systemd has an errno with this name.
pub(super) fn is_errno_name(name: &str) -> bool {
    ERRNOS.split(' ').any(|errno| errno == name)
}

/// The certainty that a release has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Membership {
    /// The release may have it.
    Possible,
    /// The release has it.
    Certain,
}

/// Names with the same history in a set or section.
struct Row {
    /// The set or section.
    title: &'static str,
    /// The first main release with the names is in this range.
    first: RangeInclusive<u16>,
    /// The last main release with them.
    last: Option<u16>,
    /// Releases of stable branches with the names, even if the main release may lack them.
    stable: Vec<SystemdVersion>,
    /// The first main release that accepts the names without effect is in this range.
    ignored: Option<RangeInclusive<u16>>,
    names: &'static str,
}

impl Row {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split(' ')
    }

    /// Whether a release has the names.
    fn membership(&self, version: SystemdVersion) -> Option<Membership> {
        let SystemdVersion { major, point } = version;
        if self.last.is_some_and(|last| major > last) {
            return None;
        }
        if major >= *self.first.end() {
            // A later release of the last branch may have lost the names.
            let is_certain = self.last != Some(major) || was_read(version);
            return Some(match is_certain {
                true => Membership::Certain,
                false => Membership::Possible,
            });
        }
        let branch = self.stable.iter().filter(|stable| stable.major == major);
        let since = branch.map(|stable| match stable.point {
            PointRelease::Number(point) => point,
            PointRelease::Newest | PointRelease::Unknown => u16::MAX,
        });
        let is_earlier = major < *self.first.start();
        match (since.min(), point) {
            (Some(_), PointRelease::Newest) => return Some(Membership::Certain),
            (Some(since), PointRelease::Number(point)) if point >= since => {
                return Some(Membership::Certain);
            }
            (None, _) if is_earlier && was_read(version) => return None,
            (_, PointRelease::Number(0)) if is_earlier => return None,
            _ => {}
        }
        Some(Membership::Possible)
    }
}

/// The number of the newest inspected release of a branch.
fn newest_read(major: u16) -> Option<u16> {
    let branch = trees().iter().filter(|tree| tree.major == major);
    let points = branch.map(|tree| match tree.point {
        PointRelease::Number(point) => point,
        // The name of a main release has no number.
        PointRelease::Newest | PointRelease::Unknown => 0,
    });
    points.max()
}

/// Whether a release is not newer than an inspected one of its branch.
fn was_read(version: SystemdVersion) -> bool {
    newest_read(version.major).is_some_and(|newest| match version.point {
        PointRelease::Newest => true,
        PointRelease::Number(point) => point <= newest,
        PointRelease::Unknown => false,
    })
}

/// The inspected releases, the oldest first.
pub(super) fn trees() -> &'static [SystemdVersion] {
    static TREES: LazyLock<Vec<SystemdVersion>> = LazyLock::new(|| {
        let mut lines = SETS.lines();
        let line = lines.find_map(|line| line.strip_prefix("trees\t"));
        versions(line.unwrap_or_default())
    });
    &TREES
}

fn versions(text: &str) -> Vec<SystemdVersion> {
    let versions = text.split(' ').filter(|version| *version != "-");
    versions
        .map(|version| version.parse().expect("a version"))
        .collect()
}

/// The fields of the rows of a table.
fn fields(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = table.lines().filter(|line| !line.starts_with(['#', 't']));
    lines.map(|line| line.split('\t').collect())
}

/// `258`, or `258..259`.
fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (start, end) = text.split_once("..").unwrap_or((text, text));
    Some(start.parse().ok()?..=end.parse().ok()?)
}

fn set_rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let row = |fields: Vec<&'static str>| Row {
            title: fields[0],
            first: range(fields[1]).expect("a version"),
            last: fields[2].parse().ok(),
            stable: versions(fields[3]),
            ignored: None,
            names: fields[5],
        };
        fields(SETS).map(row).collect()
    });
    &ROWS
}

fn directive_rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let row = |fields: Vec<&'static str>| Row {
            title: fields[0].trim_matches(['[', ']']),
            first: range(fields[1]).expect("a version"),
            last: None,
            stable: Vec::new(),
            ignored: range(fields[2]),
            names: fields[4],
        };
        fields(DIRECTIVES).map(row).collect()
    });
    &ROWS
}

/// Whether a release has a set.
pub(super) fn has_set(name: &str, version: SystemdVersion) -> bool {
    let mut rows = set_rows().iter().filter(|row| row.title == name);
    rows.any(|row| row.membership(version).is_some())
}

/// The first main release with a set.
pub(super) fn first_with_set(name: &str) -> Option<u16> {
    let rows = set_rows().iter().filter(|row| row.title == name);
    rows.map(|row| *row.first.end()).min()
}

/// The names of all sets of a release.
pub(super) fn set_names(version: SystemdVersion) -> impl Iterator<Item = &'static str> {
    let mut last = "";
    let rows = set_rows().iter();
    let rows = rows.filter(move |row| row.membership(version).is_some());
    rows.filter_map(move |row| {
        (row.title != std::mem::replace(&mut last, row.title)).then_some(row.title)
    })
}

/// The calls of a set and of its nested sets in a release.
pub(super) fn calls(set_name: &str, version: SystemdVersion) -> BTreeMap<&'static str, Membership> {
    let mut calls = BTreeMap::new();
    add_calls(set_name, version, Membership::Certain, &mut calls);
    calls
}

fn add_calls(
    set_name: &str,
    version: SystemdVersion,
    within: Membership,
    calls: &mut BTreeMap<&'static str, Membership>,
) {
    for row in set_rows().iter().filter(|row| row.title == set_name) {
        let Some(own) = row.membership(version) else {
            continue;
        };
        let own = own.min(within);
        for member in row.names() {
            match member.starts_with('@') {
                // Terminates: no set contains itself.
                true => add_calls(member, version, own, calls),
                false => {
                    let known = calls.entry(member).or_insert(own);
                    *known = own.max(*known);
                }
            }
        }
    }
}

/// The calls that a set certainly has in a release, or may have.
pub(super) fn calls_from(
    set_name: &str,
    version: SystemdVersion,
    least: Membership,
) -> impl Iterator<Item = &'static str> {
    let calls = calls(set_name, version).into_iter();
    calls.filter_map(move |(call, own)| (own >= least).then_some(call))
}

/// The same without those of nested sets.
pub(super) fn own_calls_from(
    set_name: &str,
    version: SystemdVersion,
    least: Membership,
) -> impl Iterator<Item = &'static str> {
    let rows = set_rows().iter().filter(move |row| row.title == set_name);
    let rows = rows.filter(move |row| row.membership(version).is_some_and(|own| own >= least));
    let names = rows.flat_map(Row::names);
    names.filter(|name| !name.starts_with('@'))
}

/// Whether some release of systemd knows a call.
pub(super) fn is_known(call: &str) -> bool {
    static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let is_list = |row: &&Row| ["@known", "@obsolete"].contains(&row.title);
        let rows = set_rows().iter().filter(is_list);
        rows.flat_map(Row::names).collect()
    });
    KNOWN.contains(call)
}

/// The treatment of a directive by a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// It has its effect.
    Obeyed,
    /// It is accepted without effect, since a release of this range.
    Ignored(RangeInclusive<u16>),
    /// It is unknown: this is the first release with it.
    Newer(u16),
}

/// The treatment of a directive in a section; `None` if no release has it there.
pub(super) fn directive(section: &str, name: &str, version: SystemdVersion) -> Option<Reading> {
    let mut rows = rows_of(section).filter(|row| row.names().any(|own| own == name));
    let row = rows.next()?;
    let first = *row.first.end();
    Some(match &row.ignored {
        _ if version.major < first => Reading::Newer(first),
        Some(ignored) if version.major >= *ignored.start() => Reading::Ignored(ignored.clone()),
        _ => Reading::Obeyed,
    })
}

/// The directives of a section in a release.
pub(super) fn directives(
    section: &str,
    version: SystemdVersion,
) -> impl Iterator<Item = &'static str> {
    let rows = rows_of(section).filter(move |row| *row.first.end() <= version.major);
    rows.flat_map(Row::names)
}

/// The names of all sections.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    let rows = directive_rows().iter().map(|row| row.title);
    let rows = rows.filter(|title| !title.ends_with("-common"));
    rows.filter(move |title| *title != std::mem::replace(&mut last, *title))
}

fn rows_of(section: &str) -> impl Iterator<Item = &'static Row> {
    directive_rows().iter().filter(move |row| {
        let mut templates = TEMPLATES.iter().filter(|(name, _)| *name == row.title);
        row.title == section || templates.any(|(_, sections)| sections.contains(&section))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> SystemdVersion {
        text.parse().expect("a version")
    }

    #[test]
    fn sets_contain_sets_that_exist_and_none_itself() {
        fn check(name: &str, version: SystemdVersion, depth: usize) {
            assert!(depth < 5, "{name}");
            for row in set_rows().iter().filter(|row| row.title == name) {
                for member in row.names().filter(|member| member.starts_with('@')) {
                    if row.membership(version).is_some() {
                        assert!(has_set(member, version), "{member}");
                        check(member, version, depth + 1);
                    }
                }
            }
        }
        for major in 252..=SystemdVersion::newest().major {
            let version = SystemdVersion::branch(major);
            set_names(version).for_each(|name| check(name, version, 0));
            let known = calls("@known", version);
            assert_eq!(known.get("read"), Some(&Membership::Certain));
            let service = calls("@system-service", version);
            assert_eq!(service.get("futex"), Some(&Membership::Certain));
        }
    }

    /// A member of `@file-system` in 257.13, and in main releases since 257 or 258.
    #[test]
    fn a_release_between_those_that_were_read_may_have_a_name() {
        let of = |text| {
            calls("@file-system", version(text))
                .get("setxattrat")
                .copied()
        };
        for text in [
            "252", "252.39", "252.0", "252.10", "254.26", "255.0", "256.0",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        for text in ["252.40", "252-32.el9", "255", "255.3", "257.0", "257.12"] {
            assert_eq!(of(text), Some(Membership::Possible), "{text}");
        }
        for text in ["257", "257.13", "257.20", "258", "258.0", "262"] {
            assert_eq!(of(text), Some(Membership::Certain), "{text}");
        }
    }

    #[test]
    fn a_member_of_a_stable_branch_isnt_one_of_its_first_releases() {
        let of = |text| calls("@default", version(text)).get("uretprobe").copied();
        assert_eq!(of("252.0"), None);
        assert_eq!(of("252.37"), Some(Membership::Possible));
        assert_eq!(of("252.38"), Some(Membership::Certain));
        assert_eq!(of("252"), Some(Membership::Certain));
        let of = |text| {
            calls("@default", version(text))
                .get("lsm_get_self_attr")
                .copied()
        };
        assert_eq!(of("258"), Some(Membership::Certain));
        assert_eq!(of("258.0"), None);
        assert_eq!(of("258.9"), Some(Membership::Possible));
    }

    #[test]
    fn a_call_moves_from_one_set_to_another() {
        let of = |set, text| calls(set, version(text)).get("open_tree").copied();
        assert_eq!(of("@mount", "257.13"), Some(Membership::Certain));
        assert_eq!(of("@mount", "257.14"), Some(Membership::Possible));
        assert_eq!(of("@mount", "258"), None);
        assert_eq!(of("@file-system", "257"), None);
        assert_eq!(of("@file-system", "258"), Some(Membership::Certain));
    }

    #[test]
    fn directives_have_the_releases_that_read_them() {
        let of = |section, name, text| directive(section, name, version(text));
        assert_eq!(
            of("Service", "PrivatePIDs", "252"),
            Some(Reading::Newer(257))
        );
        assert_eq!(of("Swap", "PrivatePIDs", "257"), Some(Reading::Obeyed));
        assert_eq!(of("Timer", "PrivatePIDs", "257"), None);
        let ignored = |range| Some(Reading::Ignored(range));
        assert_eq!(of("Slice", "MemoryLimit", "257"), Some(Reading::Obeyed));
        assert_eq!(of("Slice", "MemoryLimit", "259"), ignored(258..=262));
        assert!(sections().any(|section| section == "Install"));
        assert!(directives("Scope", version("252")).any(|name| name == "KillMode"));
    }
}
