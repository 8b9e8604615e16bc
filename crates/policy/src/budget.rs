//! What the files of one policy may take together, in number and in bytes.

use tamis_diag::{Code, Diagnostic, Span, code};

use crate::limits::{MAX_FILES, MAX_SOURCE_BYTES};
use crate::sink::Sink;

/// What has been taken so far.
pub(crate) struct Budget {
    files: usize,
    source_bytes: usize,
    /// The code of the language for its limits.
    too_many: Code,
}

impl Budget {
    /// Nothing yet; too many files are told with this code.
    pub(crate) fn new(too_many: Code) -> Budget {
        Budget {
            files: 0,
            source_bytes: 0,
            too_many,
        }
    }

    /// Takes one more file; says so and stops reading if that is too much.
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
