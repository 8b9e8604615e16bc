//! Charts as text: bars and curves as SVG, and HTML pages that contain them.
//!
//! tamis needs two kinds of chart: [`Bars`] compare a figure of several subjects in several groups, [`Curves`] show
//! the growth of a figure. Both are plain data with a method that returns a [`Drawing`], which is a complete SVG as
//! text; [`page`] combines drawings and a text on one HTML page. The same data always gives the same text, without
//! external references.
//!
//! Not included are measuring, statistics, interaction and files.
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
