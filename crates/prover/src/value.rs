//! The values that a program computes, as functions of the input.

use tamis_abi::Word;
use tamis_abi::hash::WordHashMap;
use tamis_bpf::AluOp;

use crate::bits::{self, Bits};
use crate::diagram::{Diagram, FALSE, Limited, Node, View};
use crate::stop::Share;

/// A value by its number in [`Values`]: states are small and quick to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Value(u32);

/// The value 0, which also replaces all values that are no longer needed.
pub(crate) const ZERO: Value = Value(0);

/// The canonical form of a value: the first variant that can represent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    Constant(u32),
    /// The bits of the word in the mask, which isn't 0.
    Masked {
        word: Word,
        mask: u32,
    },
    Computed(Box<Bits>),
}

/// The distinct values found so far.
pub(crate) struct Values {
    shapes: Vec<Shape>,
    numbers: WordHashMap<Shape, Value>,
    /// The unmasked words, which are loaded often.
    words: [Option<Value>; Word::COUNT_WITH_VARIABLES],
}

impl Values {
    pub(crate) fn new() -> Values {
        let mut values = Values {
            shapes: Vec::new(),
            numbers: WordHashMap::default(),
            words: [None; Word::COUNT_WITH_VARIABLES],
        };
        // Gives it the number 0, which is `ZERO`.
        values.constant(0);
        values
    }

    pub(crate) fn shape(&self, value: Value) -> &Shape {
        &self.shapes[value.0 as usize]
    }

    pub(crate) fn constant(&mut self, value: u32) -> Value {
        self.number(Shape::Constant(value))
    }

    pub(crate) fn word(&mut self, word: Word) -> Value {
        if let Some(value) = self.words[word.index()] {
            return value;
        }
        let mask = u32::MAX;
        let value = self.number(Shape::Masked { word, mask });
        self.words[word.index()] = Some(value);
        value
    }

    /// The value of `left op right` as the machine computes it; not for a division by zero.
    pub(crate) fn alu(
        &mut self,
        diagram: &mut Diagram,
        op: AluOp,
        left: Value,
        right: &Shape,
    ) -> Limited<Value> {
        let left = self.shape(left);
        if let (AluOp::And, Shape::Masked { word, mask }, Shape::Constant(k)) = (op, left, right) {
            let (word, mask) = (*word, mask & k);
            return Ok(self.number(match mask {
                0 => Shape::Constant(0),
                mask => Shape::Masked { word, mask },
            }));
        }
        diagram.check_stop()?;
        let (left, right) = (bits_of(diagram, left)?, bits_of(diagram, right)?);
        let result = bits::alu(diagram, op, &left, &right)?;
        self.computed(diagram, result)
    }

    /// The value of `-value`.
    pub(crate) fn negate(&mut self, diagram: &mut Diagram, value: Value) -> Limited<Value> {
        let value = bits_of(diagram, self.shape(value))?;
        let result = bits::negate(diagram, &value)?;
        self.computed(diagram, result)
    }

    fn computed(&mut self, diagram: &mut Diagram, bits: Bits) -> Limited<Value> {
        let shape = match (bits::as_constant(&bits), bits::as_masked(diagram, &bits)?) {
            (Some(value), _) => Shape::Constant(value),
            (None, Some((word, mask))) => Shape::Masked { word, mask },
            (None, None) => Shape::Computed(Box::new(bits)),
        };
        Ok(self.number(shape))
    }

    fn number(&mut self, shape: Shape) -> Value {
        if let Some(value) = self.numbers.get(&shape) {
            return *value;
        }
        let value = Value(self.shapes.len() as u32);
        self.shapes.push(shape.clone());
        self.numbers.insert(shape, value);
        value
    }
}

/// The conditions that the bits of a value are set.
pub(crate) fn bits_of(diagram: &mut Diagram, shape: &Shape) -> Limited<Bits> {
    match shape {
        Shape::Constant(value) => Ok(bits::constant(*value)),
        Shape::Masked { word, mask } => {
            let mut bits = bits::word(diagram, *word)?;
            for (bit, node) in bits.iter_mut().enumerate() {
                if mask >> bit & 1 == 0 {
                    *node = FALSE;
                }
            }
            Ok(bits)
        }
        Shape::Computed(bits) => Ok(**bits),
    }
}

/// The function that returns a value.
pub(crate) fn returning(diagram: &mut Diagram, shape: &Shape) -> Limited<Node> {
    let bits = bits_of(diagram, shape)?;
    let mut known = Known {
        nodes: WordHashMap::default(),
        share: diagram.share(),
    };
    returning_bits(diagram, &bits, &mut known)
}

/// The nodes of values found so far.
struct Known {
    // Boxed: a table of the bits themselves takes twice their room whenever it grows.
    nodes: WordHashMap<Box<Bits>, Node>,
    share: Share,
}

/// The memory of a known node: its bits with the overhead of their allocation, and its place in a table that grows.
const BYTES_PER_KNOWN: usize = size_of::<Bits>() + 16 + 36;
/// The interval of accounts of memory.
const NODES_BETWEEN_ACCOUNTS: usize = 1 << 10;

fn returning_bits(diagram: &mut Diagram, bits: &Bits, known: &mut Known) -> Limited<Node> {
    if let Some(constant) = bits::as_constant(bits) {
        return diagram.leaf(constant);
    }
    if let Some(node) = known.nodes.get(bits) {
        return Ok(*node);
    }
    diagram.tick()?;
    let top = |node: &Node| match diagram.view(*node) {
        View::Leaf(_) => None,
        View::Branch { variable, .. } => Some(variable),
    };
    let variable = bits.iter().filter_map(top).min();
    let variable = variable.expect("a value that isn't constant has a variable");
    let low = bits.map(|node| diagram.cofactors(node, variable).0);
    let high = bits.map(|node| diagram.cofactors(node, variable).1);
    let low = returning_bits(diagram, &low, known)?;
    let high = returning_bits(diagram, &high, known)?;
    let node = diagram.branch(variable, low, high)?;
    known.nodes.insert(Box::new(*bits), node);
    if known.nodes.len().is_multiple_of(NODES_BETWEEN_ACCOUNTS) {
        known.share.set(BYTES_PER_KNOWN * known.nodes.len())?;
    }
    // Distinct tuples of bits are distinct functions: the table holds as many nodes, except for the
    // leaves, and its limit bounds `known` as well.
    Ok(node)
}
