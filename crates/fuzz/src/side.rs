//! One side of a comparison, prepared for millions of evaluations.

use tamis_abi::{Action, Endian, SeccompData, Word};
use tamis_bpf::{InvalidProgram, Program};
use tamis_prover::Subject;
use tamis_vm::{Code, Seen};

use crate::translate;

/// The sixteen words of a call, by meaning.
pub(crate) type Words = [u32; Word::COUNT];

/// The words of a call.
pub(crate) fn words(data: &SeccompData) -> Words {
    data.image(Endian::Little)
}

/// The call with these words.
pub(crate) fn data(words: &Words) -> SeccompData {
    let with = |data: SeccompData, word: Word| data.with_word(word, words[word.index()]);
    Word::all().fold(SeccompData::default(), with)
}

/// A program with its coverage.
pub(crate) struct Filter {
    pub(crate) program: Program,
    /// Whether it is a translated policy.
    pub(crate) is_policy: bool,
    code: Code,
    seen: Seen,
}

/// A subject with its programs.
pub(crate) struct Side<'a> {
    pub(crate) subject: Subject<'a>,
    /// The filters of the side, the oldest first.
    pub(crate) filters: Vec<Filter>,
    is_stack: bool,
}

impl Filter {
    fn collect(subject: &Subject<'_>, filters: &mut Vec<Filter>) -> Result<(), InvalidProgram> {
        let (program, is_policy) = match subject {
            Subject::Ruleset(ruleset) => (translate::program(ruleset)?, true),
            Subject::Program(program) => ((*program).clone(), false),
            // Inputs are calls, so all variables are 0.
            Subject::Template(template) => (template.unbound().clone(), false),
            Subject::Stack(subjects) => {
                let mut subjects = subjects.iter();
                return subjects.try_for_each(|subject| Filter::collect(subject, filters));
            }
        };
        let code = Code::of_program(&program);
        filters.push(Filter {
            seen: code.nothing_seen(),
            code,
            program,
            is_policy,
        });
        Ok(())
    }
}

impl<'a> Side<'a> {
    pub(crate) fn new(subject: &Subject<'a>) -> Result<Side<'a>, InvalidProgram> {
        let mut filters = Vec::new();
        Filter::collect(subject, &mut filters)?;
        Ok(Side {
            subject: *subject,
            filters,
            is_stack: matches!(subject, Subject::Stack(_)),
        })
    }

    /// Evaluates the side; returns its return value.
    pub(crate) fn run(&mut self, words: &Words) -> u32 {
        if !self.is_stack {
            let filter = &mut self.filters[0];
            return filter.code.run(words, &mut filter.seen);
        }
        let mut kept = Action::ALLOW.ret();
        for filter in self.filters.iter_mut().rev() {
            let ret = filter.code.run(words, &mut filter.seen);
            if Action::precedence(ret) < Action::precedence(kept) {
                kept = ret;
            }
        }
        kept
    }

    /// The number of different places that its programs have reached.
    pub(crate) fn reached(&self) -> u32 {
        self.filters.iter().map(|filter| filter.seen.count()).sum()
    }
}
