//! Looks at the text before the parser may, for nesting that would exhaust the parser's stack.
//!
//! The parser and every walk over its tree are recursive. `structure` reads the text token by token and adds up how deep the
//! tree can get at most; it refuses the few spellings whose tokens cannot be told apart without parsing.

mod literals;

use super::Refusal;
use crate::outcome::IllegalKind;

/// Deepest tree that is parsed, in tokens that may nest.
pub(super) const MAX_DEPTH: u32 = 1_200;

/// What the last token was: it decides what a slash, a bracket or a line end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing yet, or an operator: an operand comes next.
    Operator,
    /// A value ends here.
    Operand,
    /// A keyword that takes an operand.
    Prefix,
    /// `)` of `if (…)`, `for (…)` and the like.
    ControlParen,
    /// `}` that is not a template's.
    Brace,
    /// After it a slash cannot be told from a regular expression without parsing.
    Unclear,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Paren { control: bool },
    Square,
    Brace,
    Template,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    bracket: Bracket,
    /// `do`s: never forgotten while the bracket is open, their `while` comes late.
    lasting: u32,
    /// What nests statements: until the statement ends.
    statement: u32,
    /// What nests expressions: until the next comma.
    expression: u32,
}

struct Scan<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    frames: Vec<Frame>,
    depth: u32,
    last: Last,
    /// A line ended since the last token.
    new_line: bool,
    /// A statement ended, unless `else` follows.
    ended: bool,
    /// The last word was one that a control `(` follows.
    control: bool,
    /// The last token was `.` or `?.`: the next word is a property.
    after_dot: bool,
    /// The token before the last word can start a statement: a colon makes the word a label.
    label_possible: bool,
}

/// Refuses text that nests too deep to be parsed safely, and the spellings that cannot be read without parsing.
pub(super) fn structure(text: &str) -> Result<(), Refusal> {
    let top = Frame { bracket: Bracket::Brace, lasting: 1, statement: 0, expression: 0 };
    let mut scan = Scan {
        bytes: text.as_bytes(),
        text,
        at: 0,
        frames: vec![top],
        depth: 1,
        last: Last::Operator,
        new_line: true,
        ended: false,
        control: false,
        after_dot: false,
        label_possible: true,
    };
    scan.run()
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn refuse(&self, message: &str) -> Refusal {
        Refusal::new(IllegalKind::IllegalSyntax, u32::try_from(self.at).unwrap_or(0), message)
    }

    fn run(&mut self) -> Result<(), Refusal> {
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' | b'\r' => {
                    self.new_line = true;
                    self.at += 1;
                }
                b'/' if self.peek(1) == b'/' => self.line_comment(),
                b'/' if self.peek(1) == b'*' => self.block_comment(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'\\' | b'#' | b'@' => self.word()?,
                b'0'..=b'9' => self.number(),
                b'.' if self.peek(1).is_ascii_digit() => self.number(),
                0x80.. => {
                    let c = self.text.get(self.at..).and_then(|rest| rest.chars().next()).unwrap_or('a');
                    if c.is_whitespace() {
                        self.at += c.len_utf8();
                    } else {
                        self.word()?;
                    }
                }
                b'"' | b'\'' => {
                    self.string(byte);
                    self.operand();
                }
                b'`' => {
                    if self.operand_before() {
                        self.deeper_expression();
                    }
                    self.at += 1;
                    self.template()?;
                }
                b'(' | b'[' | b'{' => self.open(byte)?,
                b')' | b']' | b'}' => self.close(byte)?,
                b';' => {
                    self.at += 1;
                    self.settle();
                    self.ended = true;
                    self.token(Last::Operator);
                    self.label_possible = true;
                }
                b',' => {
                    self.at += 1;
                    self.settle();
                    self.forget_expression();
                    self.token(Last::Operator);
                    self.label_possible = false;
                }
                b'/' => self.slash()?,
                _ => self.operator()?,
            }
            if self.depth > MAX_DEPTH {
                return Err(self.refuse(&format!(
                    "the script nests deeper than {MAX_DEPTH} levels; put parts of it into variables or functions"
                )));
            }
        }
        Ok(())
    }

    fn frame(&mut self) -> &mut Frame {
        // The bottom frame is never popped.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn token(&mut self, last: Last) {
        self.last = last;
        self.new_line = false;
        self.control = false;
        self.after_dot = false;
    }

    fn operand(&mut self) {
        self.settle();
        self.token(Last::Operand);
        self.label_possible = false;
    }

    /// A statement that ended is over, now that no `else` follows.
    fn settle(&mut self) {
        if self.ended {
            self.ended = false;
            self.forget_statement();
        }
    }

    fn forget_expression(&mut self) {
        let frame = self.frame();
        let gone = frame.expression;
        frame.expression = 0;
        self.depth -= gone;
    }

    fn forget_statement(&mut self) {
        self.forget_expression();
        let frame = self.frame();
        let gone = frame.statement;
        frame.statement = 0;
        self.depth -= gone;
    }

    fn deeper_expression(&mut self) {
        self.frame().expression += 1;
        self.depth += 1;
    }

    fn deeper_statement(&mut self) {
        self.frame().statement += 1;
        self.depth += 1;
    }

    fn operand_before(&self) -> bool {
        matches!(self.last, Last::Operand | Last::Brace | Last::Unclear)
    }

    fn push(&mut self, bracket: Bracket) {
        self.frames.push(Frame { bracket, lasting: 1, statement: 0, expression: 0 });
        self.depth += 1;
        self.label_possible = true;
        self.token(Last::Operator);
    }

    fn open(&mut self, byte: u8) -> Result<(), Refusal> {
        self.settle();
        let bracket = match byte {
            b'(' => Bracket::Paren { control: self.control && !self.after_dot },
            b'[' => Bracket::Square,
            _ => Bracket::Brace,
        };
        // A call or an index of what stands before it.
        if bracket != Bracket::Brace && self.operand_before() {
            self.deeper_expression();
        }
        self.at += 1;
        self.push(bracket);
        Ok(())
    }

    fn close(&mut self, byte: u8) -> Result<(), Refusal> {
        self.settle();
        let frame = *self.frame();
        let fits = match byte {
            b')' => matches!(frame.bracket, Bracket::Paren { .. }),
            b']' => frame.bracket == Bracket::Square,
            _ => matches!(frame.bracket, Bracket::Brace | Bracket::Template),
        };
        if !fits || self.frames.len() == 1 {
            // Not JavaScript: the parser will not get past this either.
            self.at = self.bytes.len();
            return Ok(());
        }
        self.frames.pop();
        self.depth -= frame.lasting + frame.statement + frame.expression;
        self.at += 1;
        self.label_possible = false;
        match frame.bracket {
            Bracket::Paren { control: true } => self.token(Last::ControlParen),
            Bracket::Paren { .. } | Bracket::Square => self.token(Last::Operand),
            Bracket::Brace => self.token(Last::Brace),
            Bracket::Template => self.template()?,
        }
        Ok(())
    }

    fn word(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        self.at += 1;
        if self.bytes[start] == b'\\' {
            self.at = start;
        }
        loop {
            match self.peek(0) {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' => self.at += 1,
                b'\\' if self.peek(1) == b'u' && self.peek(2) == b'{' => {
                    self.at += 3;
                    while self.peek(0).is_ascii_hexdigit() {
                        self.at += 1;
                    }
                    if self.peek(0) != b'}' {
                        return Err(self.refuse("this escape in a name is not complete"));
                    }
                    self.at += 1;
                }
                b'\\' => self.at += 2,
                0x80.. => {
                    let Some(c) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) else {
                        self.at += 1;
                        continue;
                    };
                    if c.is_whitespace() {
                        break;
                    }
                    self.at += c.len_utf8();
                }
                _ => break,
            }
        }
        self.at = self.at.min(self.bytes.len());
        let word = self.text.get(start..self.at).unwrap_or("");
        if word.starts_with("#!") || (word == "#" && self.peek(0) == b'!') {
            return Err(self.refuse("a `#!` line is not allowed; remove it"));
        }
        self.on_word(word)
    }

    fn on_word(&mut self, word: &str) -> Result<(), Refusal> {
        if self.after_dot {
            self.token(Last::Operand);
            self.label_possible = false;
            return Ok(());
        }
        let value_before = self.last == Last::Operand;
        let brace_before = self.last == Last::Brace;
        let joins = matches!(
            word,
            "else"
                | "catch"
                | "finally"
                | "in"
                | "of"
                | "instanceof"
                | "as"
                | "satisfies"
                | "extends"
                | "is"
                | "while"
        );
        if self.ended && (word == "else" || (word == "while" && self.frame().lasting > 1)) {
            self.ended = false;
        } else {
            self.settle();
            let fresh = (value_before && self.new_line) || brace_before;
            let do_while = word == "while" && self.frame().lasting > 1;
            if fresh && (!joins || (word == "while" && !do_while)) {
                self.forget_statement();
            }
        }
        let begins = self.label_possible
            || brace_before
            || matches!(self.last, Last::ControlParen | Last::Prefix)
            || (value_before && self.new_line);
        self.label_possible = false;
        let last = match word {
            "if" | "for" | "while" | "with" => {
                self.deeper_statement();
                Last::Prefix
            }
            "else" => {
                self.deeper_statement();
                Last::Prefix
            }
            "do" => {
                self.frame().lasting += 1;
                self.depth += 1;
                Last::Prefix
            }
            "case" => {
                self.forget_statement();
                Last::Prefix
            }
            "return" | "throw" => Last::Prefix,
            "await" | "in" | "of" | "instanceof" | "typeof" | "void" | "delete" | "new" | "yield" | "as"
            | "satisfies" | "keyof" | "readonly" | "unique" | "infer" | "asserts" | "is" | "extends" => {
                self.deeper_expression();
                if matches!(word, "await" | "in" | "instanceof") { Last::Prefix } else { Last::Unclear }
            }
            _ => Last::Operand,
        };
        let control = matches!(word, "if" | "for" | "while" | "with") || (word == "await" && self.control);
        self.token(last);
        self.control = control;
        if last == Last::Operand && begins && !control {
            self.label_possible = true;
        }
        Ok(())
    }

    fn slash(&mut self) -> Result<(), Refusal> {
        match self.last {
            Last::Operand => {
                self.at += if self.peek(1) == b'=' { 2 } else { 1 };
                self.deeper_expression();
                self.token(Last::Operator);
                Ok(())
            }
            Last::Brace | Last::Unclear => Err(self.refuse(
                "this `/` may begin a regular expression or divide; put the part before it in parentheses, or end it with `;`",
            )),
            Last::Operator | Last::Prefix | Last::ControlParen => {
                self.regex();
                self.operand();
                Ok(())
            }
        }
    }

    fn operator(&mut self) -> Result<(), Refusal> {
        let bytes = self.bytes;
        let rest = &bytes[self.at..];
        if rest.starts_with(b"<!--") || (rest.starts_with(b"-->") && self.new_line) {
            return Err(self.refuse("HTML comments are not allowed; use `//`"));
        }
        let value_before = self.operand_before() || self.last == Last::ControlParen;
        let same_line_value = value_before && !self.new_line;
        self.settle();
        const LONG: [&[u8]; 24] = [
            b">>>=", b"...", b"===", b"!==", b"**=", b"<<=", b">>=", b"&&=", b"||=", b"??=", b"=>", b"==",
            b"!=", b"<=", b">=", b"&&", b"||", b"??", b"?.", b"**", b"+=", b"-=", b"*=", b"%=",
        ];
        if rest.starts_with(b"++") || rest.starts_with(b"--") {
            self.at += 2;
            self.deeper_expression();
            self.token(if same_line_value { Last::Operand } else { Last::Operator });
            return Ok(());
        }
        let len = LONG.iter().find(|long| rest.starts_with(long)).map_or(1, |long| long.len());
        let first = rest[0];
        self.at += len;
        let label = first == b':' && self.label_possible;
        match (first, len) {
            (b'.', 3) => self.token(Last::Operator),
            (b'.', _) | (b'?', 2) if first == b'.' || rest[1] == b'.' => {
                self.deeper_expression();
                self.token(Last::Operator);
                // `a?.b` and `a.b`; `a ? .5 : 1` is a number and never comes here.
                self.after_dot = true;
            }
            // A type argument or a comparison: types nest across commas.
            (b'<', 1) => {
                self.deeper_statement();
                self.token(Last::Operator);
            }
            (b'>', 1) => {
                self.deeper_expression();
                self.token(Last::Unclear);
            }
            // TypeScript's `value!`.
            (b'!', 1) if same_line_value => {
                self.deeper_expression();
                self.token(Last::Operand);
            }
            (b':', _) => {
                if label {
                    self.deeper_statement();
                }
                self.token(Last::Operator);
            }
            _ => {
                self.deeper_expression();
                self.token(Last::Operator);
            }
        }
        // Behind the colon of a `case`, a property or a label, a label may follow.
        self.label_possible = first == b':';
        Ok(())
    }
}
