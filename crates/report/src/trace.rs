//! The events of a traced command: `tamis trace --json`, an object for each event.

use serde::Serialize;

/// An event. Absent members are omitted.
#[derive(Serialize)]
pub struct TraceEvent {
    pub event: &'static str,
    pub time_us: u64,
    pub task: i32,
    #[serde(flatten)]
    pub details: TraceDetails,
}

/// The details of an event of one kind.
#[derive(Serialize)]
#[serde(untagged)]
pub enum TraceDetails {
    Call(TracedCall),
    Signal {
        number: i32,
        name: String,
        info: String,
    },
    Exited {
        code: u8,
    },
    Killed {
        number: i32,
        name: String,
        core_dumped: bool,
    },
    Superseded {
        by: i32,
    },
    Lost {
        count: u64,
    },
}

/// A call that has returned, or never will.
#[derive(Serialize)]
pub struct TracedCall {
    pub arch: String,
    pub nr: u32,
    pub call: String,
    pub args: Vec<TracedArgument>,
    pub result: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    pub is_interrupted: bool,
    pub is_denied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub took_us: u64,
}

/// An argument of a call.
#[derive(Serialize)]
pub struct TracedArgument {
    pub name: &'static str,
    pub raw: String,
    #[serde(flatten)]
    pub value: TracedValue,
}

/// The meaning of an argument.
#[derive(Serialize)]
pub struct TracedValue {
    pub kind: &'static str,
    pub value: TracedData,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// A value in JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub enum TracedData {
    Signed(i64),
    Unsigned(u64),
    Text(String),
    List(Vec<TracedValue>),
    Nothing,
}

impl TracedValue {
    /// Text if the bytes are UTF-8, otherwise their hexadecimal digits.
    pub fn of_bytes(bytes: &[u8], is_cut: bool) -> TracedValue {
        // The cut may be within a character.
        let text = match str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if is_cut && error.error_len().is_none() => {
                str::from_utf8(&bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let (kind, value) = match text {
            Some(text) => ("text", text.to_owned()),
            None => (
                "bytes",
                bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            ),
        };
        TracedValue {
            kind,
            value: TracedData::Text(value),
            is_cut,
        }
    }
}

impl TraceEvent {
    /// The event as one line of JSON, without the newline.
    ///
    /// # Errors
    /// Never: the members have names.
    pub fn line(&self) -> serde_json::Result<String> {
        crate::line(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_or_digits() {
        let of = |bytes: &[u8], is_cut| {
            let value = TracedValue::of_bytes(bytes, is_cut);
            let TracedData::Text(text) = value.value else {
                panic!("{}", value.kind);
            };
            (value.kind, text)
        };
        assert_eq!(of("é".as_bytes(), false), ("text", "é".to_owned()));
        assert_eq!(of(b"a\xc3", true), ("text", "a".to_owned()));
        assert_eq!(of(b"a\xc3", false), ("bytes", "61c3".to_owned()));
        assert_eq!(of(b"\xff\0", true), ("bytes", "ff00".to_owned()));
    }
}
