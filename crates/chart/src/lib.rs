//! Charts as text: bars and curves as SVG, and HTML pages that hold them.
//!
//! Measurements are read as tables by programs and as pictures by people. The two kinds of picture that
//! tamis needs are here: [`Bars`] compare a figure of several subjects in several groups, [`Curves`] show
//! how a figure grows. Both are plain data with a method that gives a [`Drawing`], which is a complete SVG as text;
//! [`page`] puts drawings and a text on one HTML page. The same data always gives the same text, and what comes
//! out refers to nothing outside.
//!
//! What it doesn't do: no measuring, no statistics, no interaction, no files.
//!
//! ```
//! use tamis_chart::{Bar, Bars, Group};
//! let bars = Bars {
//!     title: "Two filters".to_owned(),
//!     unit: "ns".to_owned(),
//!     series: vec!["old".to_owned(), "new".to_owned()],
//!     groups: vec![Group {
//!         name: "getpid".to_owned(),
//!         bars: vec![Bar { value: 20.0, mark: None }, Bar { value: 12.0, mark: Some(13.0) }],
//!     }],
//! };
//! assert!(bars.draw().to_string().starts_with("<svg "));
//! ```
#![forbid(unsafe_code)]

mod bars;
mod canvas;
mod curves;
mod page;
mod scale;

pub use bars::{Bar, Bars, Group};
pub use canvas::Drawing;
pub use curves::{Axis, Curve, Curves, Style};
pub use page::page;
