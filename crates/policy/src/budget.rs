//! Limits on the count and total size of the files of one policy.

use tamis_diag::{Code, Diagnostic, Span};

use crate::code;
use crate::limits::{MAX_FILES, MAX_SOURCE_BYTES};
use crate::sink::Sink;

/// The count and bytes used so far.
pub(crate) struct Budget {
    files: usize,
    source_bytes: usize,
    /// The language's error code for too many files.
    too_many: Code,
}

impl Budget {
    /// An unused budget; too many files are reported with this code.
    pub(crate) fn new(too_many: Code) -> Budget {
        Budget {
            files: 0,
            source_bytes: 0,
            too_many,
        }
    }

    /// Counts one more file; reports an error and stops reading if a limit is exceeded.
    pub(crate) fn take(
        &mut self,
        bytes: usize,
        included_at: Option<Span>,
        sink: &mut Sink,
    ) -> bool {
        self.files += 1;
        self.source_bytes += bytes;
        let (code, message) = if self.source_bytes > MAX_SOURCE_BYTES {
            let message = format!("a policy of more than {} MiB", MAX_SOURCE_BYTES >> 20);
            (code::FILE_TOO_LARGE, message)
        } else if self.files > MAX_FILES {
            let message = format!("a policy of more than {MAX_FILES} files");
            (self.too_many, message)
        } else {
            return true;
        };
        let diagnostic = Diagnostic::error(code, message);
        sink.stop(match included_at {
            Some(span) => diagnostic.label(span, "with this file"),
            None => diagnostic,
        });
        false
    }
}
