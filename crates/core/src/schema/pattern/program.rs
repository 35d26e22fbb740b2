//! Programs that search a text in steps, of which there are at most as many as the text has characters times the program has instructions.
//!
//! An instruction stands for a character or a class of characters, whatever the class contains, so a repeated class is a few bytes for each
//! repetition. Automata over bytes, as the `regex` crate makes them, take kilobytes there.

use std::collections::HashMap;

use regex_syntax::hir::{self, Hir, HirKind, Look};

/// Most instructions of a program, and most ranges of characters in all its classes.
const MOST: usize = 20_000;
/// Most parts of an expression that are written, repetitions counted.
const MOST_PARTS: usize = 100_000;
/// Groups within each other.
const DEEPEST: u32 = 100;

/// An expression that has no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoProgram {
    /// It has lookaround, back references, or other parts that need more than one pass over a text.
    Unsupported,
    /// Its program would have too many instructions.
    TooLarge,
}

#[derive(Debug, Clone, Copy)]
enum Instruction {
    Char(char, u32),
    Class(u32, u32),
    Look(Look, u32),
    Either(u32, u32),
    Match,
}

#[derive(Debug)]
struct Class {
    ascii: u128,
    ranges: Box<[(char, char)]>,
}

impl Class {
    fn new(ranges: Box<[(char, char)]>) -> Self {
        let ascii = ranges
            .iter()
            .flat_map(|(first, last)| u32::from(*first)..=u32::from(*last).min(127))
            .fold(0, |all, char| all | (1_u128 << char));
        Self { ascii, ranges }
    }

    fn contains(&self, char: char) -> bool {
        if char.is_ascii() {
            return (self.ascii >> u32::from(char)) & 1 == 1;
        }
        let after = self.ranges.partition_point(|(_, last)| *last < char);
        self.ranges.get(after).is_some_and(|(first, _)| *first <= char)
    }
}

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    instructions: Box<[Instruction]>,
    classes: Box<[Class]>,
    start: u32,
    /// It matches at the beginning of a text only.
    is_anchored: bool,
}

impl Program {
    /// Compiles an expression in the syntax of the `regex` crate.
    pub(super) fn new(expression: &str) -> Result<Self, NoProgram> {
        let parsed = regex_syntax::ParserBuilder::new().nest_limit(DEEPEST).build().parse(expression);
        let hir = parsed.map_err(|_| NoProgram::Unsupported)?;
        let mut writer = Writer::default();
        let end = writer.push(Instruction::Match)?;
        let start = writer.write(&hir, end)?;
        Ok(Self {
            instructions: writer.instructions.into(),
            classes: writer.classes.into(),
            start,
            is_anchored: hir.properties().look_set_prefix().contains(Look::Start),
        })
    }

    /// Number of instructions.
    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Number of ranges of characters in its classes.
    pub(super) fn ranges(&self) -> usize {
        self.classes.iter().map(|class| class.ranges.len()).sum()
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.instructions)
            + size_of_val(&*self.classes)
            + self.ranges() * size_of::<(char, char)>()
    }

    /// Searches `text`, and takes the steps from `fuel`; `None` where they are used up before the end.
    pub(super) fn is_match(&self, text: &str, fuel: &mut u64) -> Option<bool> {
        let mut run = Run { program: self, steps: 0, stack: Vec::new() };
        let (mut now, mut next) = (Threads::new(self.len()), Threads::new(self.len()));
        run.steps += self.len() as u64 / 8;
        let mut chars = text.chars();
        let mut place = Place { before: None, after: chars.next() };
        let mut is_found = run.follow(self.start, place, &mut now);
        while !is_found && let Some(char) = place.after {
            *fuel = fuel.checked_sub(run.steps)?;
            run.steps = 1;
            place = Place { before: Some(char), after: chars.next() };
            next.clear();
            is_found = now.dense.iter().any(|at| run.step(*at, char, place, &mut next));
            if !self.is_anchored {
                is_found = is_found || run.follow(self.start, place, &mut next);
            } else if next.dense.is_empty() {
                break;
            }
            std::mem::swap(&mut now, &mut next);
        }
        Some(is_found)
    }
}

/// The characters on both sides of a place in a text.
#[derive(Clone, Copy)]
struct Place {
    before: Option<char>,
    after: Option<char>,
}

impl Place {
    fn is(self, look: Look) -> bool {
        let is_word =
            |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric() || char == '_');
        let is_boundary = is_word(self.before) != is_word(self.after);
        match look {
            Look::Start => self.before.is_none(),
            Look::End => self.after.is_none(),
            Look::StartLF => self.before.is_none_or(|char| char == '\n'),
            Look::EndLF => self.after.is_none_or(|char| char == '\n'),
            // Letters of words are those of ASCII in ECMA-262.
            Look::WordAscii | Look::WordUnicode => is_boundary,
            _ => !is_boundary,
        }
    }
}

/// Instructions that have been reached, each once.
struct Threads {
    dense: Vec<u32>,
    sparse: Vec<u32>,
}

impl Threads {
    fn new(most: usize) -> Self {
        Self { dense: Vec::with_capacity(most), sparse: vec![0; most] }
    }

    fn clear(&mut self) {
        self.dense.clear();
    }

    /// Adds `at`; `false` if it is there.
    fn insert(&mut self, at: u32) -> bool {
        let slot = &mut self.sparse[at as usize];
        if self.dense.get(*slot as usize) == Some(&at) {
            return false;
        }
        *slot = u32::try_from(self.dense.len()).unwrap_or(u32::MAX);
        self.dense.push(at);
        true
    }
}

struct Run<'p> {
    program: &'p Program,
    steps: u64,
    stack: Vec<u32>,
}

impl Run<'_> {
    /// Applies the instruction at `at` to `char`; `true` at a match.
    fn step(&mut self, at: u32, char: char, place: Place, next: &mut Threads) -> bool {
        self.steps += 1;
        match self.program.instructions[at as usize] {
            Instruction::Char(wanted, then) if wanted == char => self.follow(then, place, next),
            Instruction::Class(class, then) if self.program.classes[class as usize].contains(char) => {
                self.follow(then, place, next)
            }
            _ => false,
        }
    }

    /// Reaches the instruction at `at` and those that follow without a character; `true` at a match.
    fn follow(&mut self, at: u32, place: Place, threads: &mut Threads) -> bool {
        self.stack.clear();
        self.stack.push(at);
        while let Some(at) = self.stack.pop() {
            self.steps += 1;
            if !threads.insert(at) {
                continue;
            }
            match self.program.instructions[at as usize] {
                Instruction::Match => return true,
                Instruction::Either(first, second) => self.stack.extend([second, first]),
                Instruction::Look(look, then) if place.is(look) => self.stack.push(then),
                _ => {}
            }
        }
        false
    }
}

/// Writes a program from its end, so that each instruction knows the next.
#[derive(Default)]
struct Writer {
    instructions: Vec<Instruction>,
    classes: Vec<Class>,
    /// Numbers of classes by their address in the tree: one that is repeated is read once.
    read: HashMap<*const hir::Class, u32>,
    known: HashMap<Box<[(char, char)]>, u32>,
    ranges: usize,
    parts: usize,
}

impl Writer {
    fn push(&mut self, instruction: Instruction) -> Result<u32, NoProgram> {
        if self.instructions.len() == MOST {
            return Err(NoProgram::TooLarge);
        }
        self.instructions.push(instruction);
        u32::try_from(self.instructions.len() - 1).map_err(|_| NoProgram::TooLarge)
    }

    /// Writes `hir`, with `next` after it, and returns where it begins.
    fn write(&mut self, hir: &Hir, next: u32) -> Result<u32, NoProgram> {
        self.parts += 1;
        if self.parts > MOST_PARTS {
            return Err(NoProgram::TooLarge);
        }
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| NoProgram::Unsupported)?;
                text.chars().rev().try_fold(next, |next, char| self.push(Instruction::Char(char, next)))
            }
            HirKind::Class(class) => {
                let class = self.class(class)?;
                self.push(Instruction::Class(class, next))
            }
            HirKind::Look(look) => match look {
                Look::Start | Look::End | Look::StartLF | Look::EndLF => {
                    self.push(Instruction::Look(*look, next))
                }
                Look::WordAscii | Look::WordAsciiNegate | Look::WordUnicode | Look::WordUnicodeNegate => {
                    self.push(Instruction::Look(*look, next))
                }
                _ => Err(NoProgram::Unsupported),
            },
            HirKind::Capture(group) => self.write(&group.sub, next),
            HirKind::Concat(parts) => parts.iter().rev().try_fold(next, |next, part| self.write(part, next)),
            HirKind::Alternation(branches) => {
                let mut entry = None;
                for branch in branches.iter().rev() {
                    let branch = self.write(branch, next)?;
                    entry = Some(match entry {
                        None => branch,
                        Some(others) => self.push(Instruction::Either(branch, others))?,
                    });
                }
                Ok(entry.unwrap_or(next))
            }
            HirKind::Repetition(repetition) => self.repeat(repetition, next),
        }
    }

    fn repeat(&mut self, repetition: &hir::Repetition, next: u32) -> Result<u32, NoProgram> {
        let hir::Repetition { min, max, sub, .. } = repetition;
        let mut entry = next;
        match max {
            None => {
                entry = self.push(Instruction::Either(next, next))?;
                let body = self.write(sub, entry)?;
                self.instructions[entry as usize] = Instruction::Either(body, next);
            }
            Some(max) => {
                for _ in *min..*max {
                    let body = self.write(sub, entry)?;
                    entry = self.push(Instruction::Either(body, next))?;
                }
            }
        }
        (0..*min).try_fold(entry, |entry, _| self.write(sub, entry))
    }

    fn class(&mut self, class: &hir::Class) -> Result<u32, NoProgram> {
        let address = std::ptr::from_ref(class);
        if let Some(known) = self.read.get(&address) {
            return Ok(*known);
        }
        let number = self.new_class(class)?;
        self.read.insert(address, number);
        Ok(number)
    }

    fn new_class(&mut self, class: &hir::Class) -> Result<u32, NoProgram> {
        let ranges: Box<[(char, char)]> = match class {
            hir::Class::Unicode(class) => class.ranges().iter().map(|it| (it.start(), it.end())).collect(),
            hir::Class::Bytes(class) if class.is_ascii() => {
                class.ranges().iter().map(|it| (char::from(it.start()), char::from(it.end()))).collect()
            }
            hir::Class::Bytes(_) => return Err(NoProgram::Unsupported),
        };
        if let Some(known) = self.known.get(&ranges) {
            return Ok(*known);
        }
        self.ranges += ranges.len();
        if self.ranges > MOST {
            return Err(NoProgram::TooLarge);
        }
        let number = u32::try_from(self.classes.len()).map_err(|_| NoProgram::TooLarge)?;
        self.known.insert(ranges.clone(), number);
        self.classes.push(Class::new(ranges));
        Ok(number)
    }
}
