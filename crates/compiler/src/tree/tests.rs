//! Tests of search trees: they are correct, as cheap as their tables, and the cheapest of all where all can be tried.

use tamis_abi::SeccompData;

use super::bit_tests::one_line::OneLineTest;
use super::bit_tests::rest::push;
use super::layer::Layer;
use super::table::Table;
use super::*;
use crate::dag::Node;
use crate::options::Objective;

const STEPS: Prices = Prices::for_objective(Objective::Steps);

/// `count` runs of three alternating decisions, some of them single values.
fn line(dag: &mut Dag, count: u32, weight: impl Fn(u32) -> u64) -> Vec<Run> {
    let mut first = 0;
    let mut run = |index: u32| {
        let node = dag.ret(if index.is_multiple_of(2) {
            0
        } else {
            1 + index % 3
        });
        let run = Run {
            first,
            weight: weight(index),
            node,
        };
        first += if index % 5 < 3 { 1 } else { 1 + index % 7 };
        run
    };
    (0..count).map(&mut run).collect()
}

fn steps(dag: &Dag, root: NodeId, word: Word, value: u32) -> (u32, usize) {
    let data = SeccompData::default().with_word(word, value);
    let mut id = root;
    let mut steps = 0;
    while let Node::Ask {
        word,
        question,
        yes,
        no,
    } = dag.node(id)
    {
        steps += 1;
        id = if question.holds(word, &data) { yes } else { no };
    }
    (dag.evaluate(id, &data), steps)
}

#[test]
fn the_tree_finds_the_run_of_every_border_value() {
    for count in [1, 2, 3, 4, 5, 9, 47, 48, 49, 200, 3000] {
        let mut dag = Dag::new();
        let runs = line(&mut dag, count, |index| u64::from(index % 11));
        let root = search(&mut dag, Word::NR, &runs, STEPS);
        for (index, run) in runs.iter().enumerate() {
            let last = runs.get(index + 1).map_or(u32::MAX, |next| next.first - 1);
            for value in [run.first, last] {
                let (ret, _) = steps(&dag, root, Word::NR, value);
                let right = dag.node(run.node);
                assert_eq!(Node::Ret(ret), right, "{count} runs, {value}");
            }
        }
    }
}

#[test]
fn depth_stays_logarithmic_with_the_most_uneven_weights() {
    let mut dag = Dag::new();
    let runs = line(&mut dag, 1000, |index| 1 << (index % 40));
    let root = search(&mut dag, Word::NR, &runs, STEPS);
    let deepest = runs
        .iter()
        .map(|run| steps(&dag, root, Word::NR, run.first).1);
    assert!(deepest.max().unwrap() <= 3 * 10);
}

#[test]
fn a_value_alone_between_agreeing_runs_takes_one_question() {
    let mut dag = Dag::new();
    let (deny, allow) = (dag.ret(0), dag.ret(1));
    let run = |first, node| Run {
        first,
        weight: 1,
        node,
    };
    let runs = [run(0, deny), run(7, allow), run(8, deny)];
    let root = search(&mut dag, Word::NR, &runs, STEPS);
    let by_hand = dag.ask(Word::NR, Question::Eq(7), allow, deny);
    assert_eq!(root, by_hand);
}

/// A deterministic source of small numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A line of `count` runs with random lengths, weights and decisions.
fn random_line(dag: &mut Dag, numbers: &mut Numbers, count: usize) -> Vec<Run> {
    let mut first = 0;
    let mut runs: Vec<Run> = Vec::new();
    for _ in 0..count {
        let decision = dag.ret(numbers.below(3) as u32);
        runs.push(Run {
            first,
            weight: 1 << numbers.below(12),
            node: decision,
        });
        first += if numbers.below(3) > 0 {
            1
        } else {
            1 + numbers.below(5) as u32
        };
    }
    runs
}

/// The cost of a tree for the runs of a line.
fn tree_cost(dag: &Dag, root: NodeId, spans: &[Span], prices: Prices) -> u32 {
    let Node::Ask {
        question, yes, no, ..
    } = dag.node(root)
    else {
        return 0;
    };
    let holds = |span: &Span| {
        let data = SeccompData::default().with_word(Word::NR, span.first);
        question.holds(Word::NR, &data)
    };
    let (yes_spans, no_spans): (Vec<Span>, Vec<Span>) = spans.iter().copied().partition(holds);
    let weight = |spans: &[Span]| spans.iter().map(|span| span.weight).sum();
    question_cost(prices, weight(&yes_spans), weight(&no_spans))
        + tree_cost(dag, yes, &yes_spans, prices)
        + tree_cost(dag, no, &no_spans, prices)
}

/// The least cost of all trees with `>=` and `==` anywhere and bit tests at the end, found by trying them.
fn least_cost(spans: &[Span], prices: Prices) -> u32 {
    let node = spans[0].node;
    if spans.iter().all(|span| span.node == node) {
        return 0;
    }
    let weight = |spans: &[Span]| spans.iter().map(|span| span.weight).sum();
    let both = |test: &dyn Fn(&Span) -> bool| {
        let (yes, no): (Vec<Span>, Vec<Span>) = spans.iter().copied().partition(test);
        let own = question_cost(prices, weight(&yes), weight(&no));
        (yes, no, own)
    };
    let mut least = u32::MAX;
    for (at, border) in spans.iter().enumerate() {
        let splits: [&dyn Fn(&Span) -> bool; 2] = [&|span| span.first >= border.first, &|span| {
            span.first == spans[at].first
        }];
        for (split, is_possible) in splits.into_iter().zip([at > 0, border.is_single()]) {
            if is_possible {
                let (yes, no, own) = both(split);
                least = least.min(own + least_cost(&yes, prices) + least_cost(&no, prices));
            }
        }
    }
    // Five low bits in all combinations, the others all or none: values are small, or in the last run.
    for mask in (1..32).chain(!31..=u32::MAX) {
        let answer = |value: u32| value & mask != 0;
        let ends = |span: &Span| span.last.min(64);
        let is_sure = |span: &Span| {
            (span.first..=ends(span)).all(|value| answer(value) == answer(span.first))
        };
        let (yes, no, own) = both(&|span| answer(span.first));
        let is_decided = |part: &[Span]| part.iter().all(|span| span.node == part[0].node);
        if spans.iter().all(is_sure) && is_decided(&yes) && is_decided(&no) {
            least = least.min(own);
        }
    }
    least
}

const OBJECTIVES: [Objective; 3] = [Objective::Steps, Objective::Ns, Objective::Length];

#[test]
fn short_lines_get_the_cheapest_of_all_trees() {
    let mut numbers = Numbers(1);
    for round in 0..600 {
        let mut dag = Dag::new();
        let count = 1 + numbers.below(5) as usize;
        let runs = random_line(&mut dag, &mut numbers, count);
        let prices = Prices::for_objective(OBJECTIVES[round % 3]);
        let line = Line::new(Word::NR, &runs, prices, Effort::Full);
        let root = search(&mut dag, Word::NR, &runs, prices);
        let cost = tree_cost(&dag, root, &line.spans, prices);
        assert_eq!(cost, least_cost(&line.spans, prices), "{runs:?} {prices:?}");
    }
}

#[test]
fn tables_come_close_to_the_cheapest_tree_and_cost_what_they_say() {
    let mut numbers = Numbers(2);
    let (mut sum, mut least) = (0_u64, 0_u64);
    for round in 0..600 {
        let mut dag = Dag::new();
        let count = 2 + numbers.below(5) as usize;
        let runs = random_line(&mut dag, &mut numbers, count);
        let prices = Prices::for_objective(OBJECTIVES[round % 3]);
        let line = Line::new(Word::NR, &runs, prices, Effort::Full);
        let table = Table::<f64>::new(&line.spans, prices, None);
        let said = table.cost(0, 0, line.spans.len() - 1);
        let root = table::build(&mut dag, Word::NR, &line.spans, prices, None);
        assert_eq!(tree_cost(&dag, root, &line.spans, prices), said, "{runs:?}");
        let cheapest = least_cost(&line.spans, prices);
        assert!(said >= cheapest, "{runs:?}");
        sum += u64::from(said);
        least += u64::from(cheapest);
    }
    assert!(sum <= least + least / 50, "{sum} {least}");
}

#[test]
fn small_numbers_hold_costs_below_their_limit_exactly() {
    let mut numbers = Numbers(4);
    for _ in 0..20 {
        let mut dag = Dag::new();
        let count = 7 + numbers.below(50) as usize;
        let runs = random_line(&mut dag, &mut numbers, count);
        let line = Line::new(Word::NR, &runs, STEPS, Effort::Full);
        let small = Table::<f32>::new(&line.spans, STEPS, None);
        let large = Table::<f64>::new(&line.spans, STEPS, None);
        for last in 0..line.spans.len() {
            for first in 0..=last {
                for depth in
                    (0..=table::MAX_HEAVY).filter(|depth| small.matters(*depth, first, last))
                {
                    let costs = [
                        small.cost(depth, first, last),
                        large.cost(depth, first, last),
                    ];
                    assert_eq!(costs[0], costs[1], "{first}..={last} of {runs:?}");
                }
            }
        }
    }
}

/// The costs of all parts in all layers, found by trying all cuts: by depth, last and first run.
fn costs_by_trying(layers: &[Layer<'_>], heavy: &[usize]) -> Vec<Vec<Vec<u32>>> {
    let size = layers[0].size();
    let mut all: Vec<Vec<Vec<u32>>> = Vec::new();
    for (depth, layer) in layers.iter().enumerate().rev() {
        let mut costs = vec![vec![0; size]; size];
        let mut leaves = Vec::new();
        for first in (0..size).rev() {
            layer.leaves(first, size, &mut leaves);
            for last in first..size {
                let leaf = leaves.get(last - first).copied();
                let mut least = leaf.unwrap_or(u32::MAX);
                if let Some(run) = heavy.get(depth) {
                    let rest = all[all.len() - 1][last][first];
                    least = least.min(match (first..=last).contains(run) {
                        true => layer.first_question(first, last, *run) + rest,
                        false => rest,
                    });
                }
                for cut in first + 1..=last {
                    let asked = layer.cut_question(first, last, cut);
                    least = least.min(asked + costs[cut - 1][first] + costs[last][cut]);
                }
                costs[last][first] = least;
            }
        }
        all.push(costs);
    }
    all.reverse();
    all
}

#[test]
fn what_is_left_out_makes_no_line_dearer_and_hardly_a_part_that_is_cut() {
    let mut numbers = Numbers(6);
    let (mut parts, mut dearer) = (0, 0);
    for round in 0..200 {
        let mut dag = Dag::new();
        let count = 7 + numbers.below(50) as usize;
        let runs = random_line(&mut dag, &mut numbers, count);
        let prices = Prices::for_objective(OBJECTIVES[round % 3]);
        let line = Line::new(Word::NR, &runs, prices, Effort::Full);
        let size = line.spans.len();
        let table = Table::<f64>::new(&line.spans, prices, None);
        let all = costs_by_trying(table.layers(), table.heavy());
        let whole = table.cost(0, 0, size - 1);
        assert_eq!(whole, all[0][size - 1][0], "{runs:?} {prices:?}");
        for (last, tried) in all[0].iter().enumerate() {
            for (first, least) in tried.iter().enumerate().take(last + 1) {
                let cost = table.cost(0, first, last);
                assert!(cost >= *least, "{first}..={last} {runs:?}");
                let weight = |spans: &[Span]| spans.iter().map(|span| span.weight).sum::<u32>();
                let [before, after] = [&line.spans[..first], &line.spans[last + 1..]].map(weight);
                if weight(&line.spans[first..=last]) <= before.max(after) {
                    parts += 1;
                    dearer += usize::from(cost != *least);
                }
            }
        }
    }
    assert!(dearer * 1000 <= parts, "{dearer} {parts}");
}

#[test]
fn long_lines_are_decided_rightly_and_no_worse_than_by_halving() {
    let mut numbers = Numbers(3);
    for round in 0..60 {
        let mut dag = Dag::new();
        let count = 7 + numbers.below(120) as usize;
        let mut runs = random_line(&mut dag, &mut numbers, count);
        // The last run has no end, so its frequent values are unknown.
        runs[count - 1].weight = 0;
        let prices = Prices::for_objective(OBJECTIVES[round % 3]);
        let line = Line::new(Word::NR, &runs, prices, Effort::Full);
        let root = search(&mut dag, Word::NR, &runs, prices);
        assert_eq!(root, search(&mut dag, Word::NR, &runs, prices));
        let values = one_by_one(&line.spans);
        for span in &values {
            let (ret, _) = steps(&dag, root, Word::NR, span.first);
            assert_eq!(Node::Ret(ret), dag.node(span.node), "{runs:?} {span:?}");
        }
        let cost = tree_cost(&dag, root, &values, prices);
        let halving = halving_cost(&line, 0, line.spans.len());
        assert!(cost <= halving, "{runs:?} {cost} {halving}");
    }
}

/// The values of a line as runs of their own; of the last run only the first value.
fn one_by_one(spans: &[Span]) -> Vec<Span> {
    let mut values = Vec::new();
    for span in spans {
        let last = if span.last == u32::MAX {
            span.first
        } else {
            span.last
        };
        let weight = span.weight / (last - span.first + 1);
        values.extend((span.first..=last).map(|value| Span {
            first: value,
            last: value,
            weight,
            ..*span
        }));
    }
    values
}

#[test]
fn bits_send_most_of_a_neighbourhood_away_from_single_numbers() {
    let mut dag = Dag::new();
    let (allow, deny) = (dag.ret(1), dag.ret(0));
    let run = |first: u32| Run {
        first,
        weight: if [41, 56, 103].contains(&first) {
            0
        } else {
            100
        },
        node: if [41, 56, 103].contains(&first) {
            deny
        } else {
            allow
        },
    };
    let runs = [0, 41, 42, 56, 57, 103, 104].map(run);
    let mean = |dag: &mut Dag, word: Word| {
        let root = search(dag, word, &runs, STEPS);
        let asked = (0..134).map(|value| steps(dag, root, word, value));
        let sum = (0..).zip(asked).map(|(value, (ret, questions))| {
            assert_eq!(ret == 0, [41, 56, 103].contains(&value), "{value}");
            questions as f64
        });
        sum.sum::<f64>() / 134.0
    };
    // Lines of other words than the number get no bit tests that leave a line.
    let (with, without) = (mean(&mut dag, Word::NR), mean(&mut dag, Word::IP_LOW));
    assert!(with < 0.9 * without, "{with} {without}");
}

/// A line of some values with equal weights, except for `denied` values with weight 0.
fn allowed_but(dag: &mut Dag, values: std::ops::Range<u32>, denied: &[u32]) -> Vec<Run> {
    let (allow, deny) = (dag.ret(1), dag.ret(0));
    let run = |value: u32| {
        let is_allowed = values.contains(&value) && !denied.contains(&value);
        Run {
            first: value,
            weight: if is_allowed { 100 } else { 0 },
            node: if is_allowed { allow } else { deny },
        }
    };
    (0..=values.end).map(run).collect()
}

/// The weight of all questions about the values of a line; checks that they find their decisions.
fn asked(dag: &Dag, root: NodeId, runs: &[Run]) -> u64 {
    let mut sum = 0;
    for run in runs {
        let (ret, questions) = steps(dag, root, Word::NR, run.first);
        assert_eq!(Node::Ret(ret), dag.node(run.node), "{run:?} of {runs:?}");
        sum += run.weight * questions as u64;
    }
    sum
}

#[test]
fn bit_tests_on_small_intervals_are_right_and_pay() {
    let mut numbers = Numbers(5);
    let (mut with, mut without) = (0, 0);
    for _ in 0..300 {
        let mut dag = Dag::new();
        let start = numbers.below(40) as u32;
        let length = 8 + numbers.below(90) as u32;
        let rarity = 2 + numbers.below(8);
        let denied: Vec<u32> = (start..start + length)
            .filter(|_| numbers.below(rarity) == 0)
            .collect();
        let runs = allowed_but(&mut dag, start..start + length, &denied);
        let line = Line::new(Word::NR, &runs, STEPS, Effort::Full);
        let root = search(&mut dag, Word::NR, &runs, STEPS);
        with += asked(&dag, root, &runs);
        let root = table::build(&mut dag, Word::NR, &line.spans, STEPS, None);
        without += asked(&dag, root, &runs);
    }
    assert!(with < without - without / 200, "{with} {without}");
}

/// The cost of a part that begins with a bit test, with the tree for the remaining line.
fn cost_with_bit_test(
    dag: &mut Dag,
    line: &Line,
    tests: &OneLineTests<'_>,
    test: OneLineTest,
) -> u32 {
    let part = test.first..=test.last;
    let mut rest = Vec::new();
    for span in part
        .clone()
        .filter_map(|at| tests.rest.clear(at, test.bits))
    {
        push(&mut rest, span);
    }
    let of_rest = OneLineTests::new(&rest, &[], test.bits, line.prices);
    let no = table::build(dag, Word::NR, &rest, line.prices, Some(&of_rest));
    let root = dag.ask(Word::NR, Question::AnySet(test.bits), test.decision, no);
    tree_cost(dag, root, &one_by_one(&line.spans[part]), line.prices)
}

#[test]
fn bit_tests_cost_no_more_than_is_said_of_them() {
    let mut numbers = Numbers(7);
    let [mut all, mut dearer] = [0; 2];
    for _ in 0..200 {
        let mut dag = Dag::new();
        let length = 20 + numbers.below(90) as u32;
        let rarity = 2 + numbers.below(8);
        let denied: Vec<u32> = (0..length).filter(|_| numbers.below(rarity) == 0).collect();
        let runs = allowed_but(&mut dag, 0..length, &denied);
        let line = Line::new(Word::NR, &runs, STEPS, Effort::Full);
        let tests = OneLineTests::new(&line.spans, &line.grains, 0, STEPS);
        // The last run has no end, so its values can't be tested one by one.
        let of_line = (0..line.spans.len()).flat_map(|first| tests.beginning_with(first));
        for test in of_line.filter(|test| test.last + 1 < line.spans.len()) {
            let cost = cost_with_bit_test(&mut dag, &line, &tests, *test);
            let said = test.cost;
            // The weights of the rests of runs are rounded.
            if cost > said + said / 200 {
                assert!(cost < said + said / 10, "{test:?} {cost}");
                dearer += 1;
            }
            all += 1;
        }
    }
    assert!(all > 200, "{all}");
    // The estimate may assume a second test that leaves few runs, which the search omits for such a short line.
    assert!(dearer * 1000 <= all, "{dearer} {all}");
}

/// The cost of cutting a line at its weighted median until single runs remain.
fn halving_cost(line: &Line, from: usize, to: usize) -> u32 {
    if to - from == 1 {
        return 0;
    }
    let at = line.median(from, to);
    let weight = |from: usize, to: usize| line.spans[from..to].iter().map(|span| span.weight).sum();
    question_cost(line.prices, weight(at, to), weight(from, at))
        + halving_cost(line, from, at)
        + halving_cost(line, at, to)
}

#[test]
fn many_values_take_little_more_than_a_question_each_if_length_counts() {
    let mut dag = Dag::new();
    let [others, chosen] = [0, 1].map(|ret| dag.ret(ret));
    let values = 3000;
    // Every third number, so that each value is a run between two others.
    let run = |first: u32| Run {
        first,
        weight: 1,
        node: if first.is_multiple_of(3) {
            chosen
        } else {
            others
        },
    };
    let runs: Vec<Run> = (0..values)
        .flat_map(|at| [3 * at, 3 * at + 1].map(run))
        .collect();
    let prices = Prices::for_objective(Objective::Length);
    let root = search(&mut dag, Word::NR, &runs, prices);
    let mut questions = vec![root];
    let mut seen = vec![root];
    while let Some(id) = questions.pop() {
        if let Node::Ask { yes, no, .. } = dag.node(id) {
            for next in [yes, no] {
                if !seen.contains(&next) {
                    seen.push(next);
                    questions.push(next);
                }
            }
        }
    }
    // The tables of short parts and the cuts between parts; `seen` also has the two decisions.
    let cuts = values as usize / 24;
    assert!(seen.len() - 2 <= values as usize + cuts, "{}", seen.len());
    for value in [0, 1, 2, 3, 4499, 4500, 8996, 8997, 8998, u32::MAX] {
        let (found, steps) = steps(&dag, root, Word::NR, value);
        assert_eq!(
            found,
            u32::from(value % 3 == 0 && value < 3 * values),
            "{value}"
        );
        assert!(steps <= MAX_CHAIN + 12, "{value}: {steps}");
    }
}
