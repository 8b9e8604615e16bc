//! Documents of JSON or YAML as a list of nodes with places, for untrusted texts.
//!
//! A value is a node of 16 bytes; an array or object is a node before those of its contents, with the index behind
//! them. Texts are slices of the source unless they contain escapes. So a document takes at most eight times its text,
//! the least value and its comma, and nothing is nested in memory.

/// A range of bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

impl Range {
    /// The bytes from `start` to before `end`.
    pub const fn new(start: usize, end: usize) -> Range {
        Range { start, end }
    }
}

/// A document, or several behind each other.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    text: &'t str,
    nodes: Vec<Node>,
    /// The texts that aren't in the source as they read, behind each other, and where each is.
    unescaped: String,
    unescaped_ranges: Vec<(u32, u32)>,
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    False,
    True,
    Number,
    /// A text as its range has it.
    Plain,
    /// A text as its range has it between two signs.
    Quoted,
    /// A text of [`Document::unescaped`]; the node's `next` is its index.
    Unescaped,
    Array,
    /// Keys and values follow in turn.
    Object,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// Of an array or object: the index behind its contents.
    next: u32,
    kind: Kind,
}

/// A value of a document.
#[derive(Clone, Copy, Debug)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    at: u32,
}

/// The content of a value.
#[derive(Clone, Copy, Debug)]
pub enum Content<'d> {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean(bool),
    /// A number, as it is written.
    Number(&'d str),
    /// A text.
    Text(&'d str),
    /// An array.
    Array(Array<'d>),
    /// An object.
    Object(Object<'d>),
}

/// An array of a document.
#[derive(Clone, Copy, Debug)]
pub struct Array<'d>(Value<'d>);

/// An object of a document.
#[derive(Clone, Copy, Debug)]
pub struct Object<'d>(Value<'d>);

/// A member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Member<'d> {
    /// Its key.
    pub name: &'d str,
    /// Where the key stands.
    pub name_range: Range,
    /// Its value.
    pub value: Value<'d>,
}

impl<'t> Document<'t> {
    /// The value of a text of JSON, which has one; the first of several documents.
    ///
    /// # Panics
    /// If there is none, as in an empty text of YAML.
    pub fn root(&self) -> Value<'_> {
        self.roots().next().expect("JSON is a value")
    }

    /// The values that aren't in another: the documents of the text.
    pub fn roots(&self) -> impl Iterator<Item = Value<'_>> {
        self.siblings(0, self.nodes.len() as u32)
    }

    /// Every object, in the order of the text.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object<'_>> {
        let nodes = self.nodes.iter().enumerate();
        let objects = nodes.filter(|(_, node)| node.kind == Kind::Object);
        objects.map(|(at, _)| Object(self.value(at as u32)))
    }

    /// The bytes of its nodes and texts, without the source.
    #[cfg(test)]
    pub(crate) fn size_bytes(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.unescaped.len()
    }

    fn value(&self, at: u32) -> Value<'_> {
        Value { document: self, at }
    }

    fn node(&self, at: u32) -> Node {
        self.nodes[at as usize]
    }

    /// The values from an index to before another, without nested ones.
    fn siblings(&self, start: u32, end: u32) -> impl Iterator<Item = Value<'_>> {
        let first = (start < end).then_some(start);
        let values = std::iter::successors(first, move |at| {
            let next = self.behind(*at);
            (next < end).then_some(next)
        });
        values.map(|at| self.value(at))
    }

    /// The index behind a value and its contents.
    fn behind(&self, at: u32) -> u32 {
        let node = self.node(at);
        match node.kind {
            Kind::Array | Kind::Object => node.next,
            _ => at + 1,
        }
    }

    /// The text of a node, empty for nodes that have none.
    fn text_of(&self, node: Node) -> &str {
        let (start, end) = (node.start as usize, node.end as usize);
        let text = match node.kind {
            Kind::Plain | Kind::Number => self.text.get(start..end),
            Kind::Quoted => self.text.get(start + 1..end - 1),
            Kind::Unescaped => {
                let (start, end) = self.unescaped_ranges[node.next as usize];
                self.unescaped.get(start as usize..end as usize)
            }
            Kind::Null | Kind::False | Kind::True | Kind::Array | Kind::Object => None,
        };
        text.unwrap_or_default()
    }
}

impl<'d> Value<'d> {
    fn node(self) -> Node {
        self.document.node(self.at)
    }

    /// Where it stands.
    pub fn range(self) -> Range {
        let node = self.node();
        Range::new(node.start as usize, node.end as usize)
    }

    /// The content.
    pub fn content(self) -> Content<'d> {
        let node = self.node();
        match node.kind {
            Kind::Null => Content::Null,
            Kind::False => Content::Boolean(false),
            Kind::True => Content::Boolean(true),
            Kind::Number => Content::Number(self.document.text_of(node)),
            Kind::Plain | Kind::Quoted | Kind::Unescaped => {
                Content::Text(self.document.text_of(node))
            }
            Kind::Array => Content::Array(Array(self)),
            Kind::Object => Content::Object(Object(self)),
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.node().kind == Kind::Null
    }

    /// The text, if it is one.
    pub fn as_text(self) -> Option<&'d str> {
        match self.content() {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number as it is written, if it is one.
    pub fn as_number(self) -> Option<&'d str> {
        match self.content() {
            Content::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(self) -> Option<Array<'d>> {
        match self.content() {
            Content::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(self) -> Option<Object<'d>> {
        match self.content() {
            Content::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Where a text begins, behind its quote if it has one.
    pub fn text_start(self) -> usize {
        let node = self.node();
        let is_plain = node.kind == Kind::Plain;
        node.start as usize + usize::from(!is_plain)
    }
}

impl<'d> Array<'d> {
    /// Where it stands.
    pub fn range(self) -> Range {
        self.0.range()
    }

    /// Its elements.
    pub fn elements(self) -> impl Iterator<Item = Value<'d>> {
        let Value { document, at } = self.0;
        document.siblings(at + 1, document.behind(at))
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.elements().next().is_none()
    }
}

impl<'d> Object<'d> {
    /// Where it stands.
    pub fn range(self) -> Range {
        self.0.range()
    }

    /// Its members.
    pub fn members(self) -> impl Iterator<Item = Member<'d>> {
        let Value { document, at } = self.0;
        let mut values = document.siblings(at + 1, document.behind(at));
        std::iter::from_fn(move || {
            let (name, value) = (values.next()?, values.next()?);
            Some(Member {
                name: document.text_of(name.node()),
                name_range: name.range(),
                value,
            })
        })
    }

    /// The member with a key, if there is one.
    pub fn get(self, key: &str) -> Option<Member<'d>> {
        self.members().find(|member| member.name == key)
    }
}

/// A document that is being read: values are added in the order of the text.
#[derive(Debug)]
pub(crate) struct Builder<'t> {
    document: Document<'t>,
    /// The arrays and objects that aren't closed.
    open: Vec<u32>,
}

/// A collection that a [`Builder`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Array,
    Object,
}

/// A scalar that a [`Builder`] adds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'s> {
    Null,
    Boolean(bool),
    Number,
    Text(&'s str),
}

impl<'t> Builder<'t> {
    /// A document without values, with room for so many.
    pub(crate) fn new(text: &'t str, nodes: usize) -> Builder<'t> {
        Builder {
            document: Document {
                text,
                nodes: Vec::with_capacity(nodes),
                unescaped: String::new(),
                unescaped_ranges: Vec::new(),
            },
            open: Vec::new(),
        }
    }

    /// The innermost array or object that isn't closed.
    pub(crate) fn innermost(&self) -> Option<Opened> {
        let at = *self.open.last()?;
        Some(match self.document.node(at).kind {
            Kind::Object => Opened::Object,
            _ => Opened::Array,
        })
    }

    /// Whether the innermost array or object has nothing yet.
    pub(crate) fn is_empty_innermost(&self) -> bool {
        let at = self.open.last().map(|at| *at as usize);
        at.is_some_and(|at| at + 1 == self.document.nodes.len())
    }

    /// Where the innermost array or object begins.
    pub(crate) fn innermost_start(&self) -> usize {
        let at = self.open.last();
        at.map_or(0, |at| self.document.node(*at).start as usize)
    }

    /// How many arrays and objects aren't closed.
    #[cfg(feature = "yaml")]
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// How many values there are, keys among them.
    pub(crate) fn len(&self) -> usize {
        self.document.nodes.len()
    }

    /// Forgets all values but so many.
    #[cfg(feature = "yaml")]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.document.nodes.truncate(len);
    }

    fn push(&mut self, kind: Kind, range: Range, next: u32) {
        self.document.nodes.push(Node {
            start: range.start as u32,
            end: range.end as u32,
            next,
            kind,
        });
    }

    pub(crate) fn add(&mut self, scalar: Scalar<'_>, range: Range) {
        let kind = match scalar {
            Scalar::Null => Kind::Null,
            Scalar::Boolean(false) => Kind::False,
            Scalar::Boolean(true) => Kind::True,
            Scalar::Number => Kind::Number,
            Scalar::Text(text) => return self.add_text(text, range),
        };
        self.push(kind, range, 0);
    }

    fn add_text(&mut self, text: &str, range: Range) {
        let source = self.document.text;
        let is_at = |start: usize, end: usize| source.get(start..end) == Some(text);
        let inside = (range.start + 1, range.end.saturating_sub(1));
        if is_at(range.start, range.end) {
            self.push(Kind::Plain, range, 0);
        } else if inside.0 <= inside.1 && is_at(inside.0, inside.1) {
            self.push(Kind::Quoted, range, 0);
        } else {
            let start = self.document.unescaped.len() as u32;
            self.document.unescaped.push_str(text);
            let index = self.document.unescaped_ranges.len() as u32;
            let end = self.document.unescaped.len() as u32;
            self.document.unescaped_ranges.push((start, end));
            self.push(Kind::Unescaped, range, index);
        }
    }

    pub(crate) fn open(&mut self, opened: Opened, range: Range) {
        self.open.push(self.document.nodes.len() as u32);
        let kind = match opened {
            Opened::Array => Kind::Array,
            Opened::Object => Kind::Object,
        };
        self.push(kind, range, 0);
    }

    /// Where the value with this index begins.
    #[cfg(feature = "yaml")]
    pub(crate) fn start(&self, at: usize) -> usize {
        self.document.nodes[at].start as usize
    }

    /// Closes the innermost array or object, whose last byte is before `end`; returns its index.
    pub(crate) fn close(&mut self, end: usize) -> Option<usize> {
        let at = self.open.pop()? as usize;
        let behind = self.document.nodes.len() as u32;
        let node = &mut self.document.nodes[at];
        node.end = node.end.max(end as u32);
        node.next = behind;
        Some(at)
    }

    /// The document, if everything is closed.
    pub(crate) fn finish(self) -> Option<Document<'t>> {
        self.open.is_empty().then_some(self.document)
    }
}
