//! `tamis explain --audit`: the denied calls of audit records.

use tamis_deploy::denied::{Recorded, recorded};
use tamis_diag::Sources;
use tamis_profile::records;
use tamis_report::denied::AuditReport;
use tamis_report::entry::counted;
use tamis_session::files;

use super::Args;
use crate::cli::output::show;
use crate::cli::{Failure, Global, exit};

pub(super) fn explain(args: &Args, log: &str, global: &Global) -> Result<u8, Failure> {
    let policy = match &args.input {
        Some(input) => Some(args.load.for_filter().load_policy(input, global)?),
        None => None,
    };
    let mut sources = Sources::new();
    // Lines other than records may have bytes in any encoding.
    let log = files::read(log)?;
    let text = String::from_utf8_lossy(&log.bytes);
    let source = sources.add(log.name, text);
    let read = records(&sources, source, args.load.call_arch());
    global.warn(&read.diagnostics, &sources);
    if read.records.is_empty() {
        return Err(nothing_read(read.unread));
    }
    if read.unnamed > 0 {
        global.notice(&format!(
            "note: {} in lines that don't say who wrote them: any program can have them logged",
            counted(read.unnamed, "record")
        ));
    }
    let reload = |input, kind| args.load.reload(input, kind);
    let Recorded { denied, logged } = recorded(&read.records, policy.as_ref(), &reload);
    show(&AuditReport { denied, logged }, global)?;
    Ok(exit::OK)
}

/// The failure for a log without records.
fn nothing_read(unread: u64) -> Failure {
    let message = match unread {
        0 => "this has no audit record of seccomp".to_owned(),
        unread => format!("none of {} was read", counted(unread, "audit record")),
    };
    let help = "records are lines with `type=1326` or `type=SECCOMP`, as auditd's log, `ausearch` (also `-i`), `dmesg` \
                (also `--json`), the syslog, and `journalctl` with any `-o` show them. The kernel writes them for kills, \
                and for errors if the filter was installed with `--log`";
    Failure::usage(message, help)
}
