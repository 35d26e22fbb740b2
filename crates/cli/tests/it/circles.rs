//! Files of a crate that import each other in a circle: at most three, but for crates that are named here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Files that may import each other in a circle.
const MOST: usize = 3;

/// Circles that are still to be undone: they may lose files, and no file may join them. Take off what is gone.
const KNOWN: &[(&str, &[&str])] = &[
    ("agentscript", &["pool", "pool/drive", "pool/process", "pool/record"]),
    ("demo", &["everything", "everything/ask", "everything/library", "everything/tools"]),
];

/// A module: its path below the crate's root, empty for `lib.rs`.
type Module = Vec<String>;
type Edges = BTreeMap<Module, BTreeSet<Module>>;

/// The tokens of Rust code that matter here: words and `::`, `{`, `}` and the like, without comments and literals.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            '\'' => character(rest),
            _ if first.is_alphabetic() || first == '_' => {
                let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                match &rest[..word] {
                    "r" | "br" | "cr" if rest[word..].starts_with(['"', '#']) => word + raw(&rest[word..]),
                    text => {
                        tokens.push(text);
                        word
                    }
                }
            }
            ':' if rest.starts_with("::") => {
                tokens.push(&rest[..2]);
                2
            }
            _ => {
                if !first.is_whitespace() {
                    tokens.push(&rest[..first.len_utf8()]);
                }
                first.len_utf8()
            }
        };
        rest = &rest[len..];
    }
    tokens
}

/// Length of a literal in double quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Length of a raw literal from its first `#` or `"` on.
fn raw(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    if !text[hashes..].starts_with('"') {
        return hashes; // a raw identifier
    }
    let close = format!("\"{}", "#".repeat(hashes));
    text[hashes + 1..].find(&close).map_or(text.len(), |at| hashes + 1 + at + close.len())
}

/// Length of a character literal, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            text[at + 1..].find('\'').map_or(text.len(), |end| at + 1 + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// The tokens without modules of tests, and the names of such modules in files of their own.
fn without_tests<'t>(tokens: &[&'t str]) -> (Vec<&'t str>, Vec<&'t str>) {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut apart, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        if tokens[at..].starts_with(&TEST) {
            let ends = |token: &&str| matches!(*token, "{" | ";");
            let head = tokens[at + TEST.len()..].iter().position(ends).unwrap_or_default() + at + TEST.len();
            let is_module = tokens[head - 2] == "mod";
            if is_module && tokens[head] == ";" {
                apart.push(tokens[head - 1]);
            }
            if is_module {
                at = if tokens[head] == "{" { closing(tokens, head) } else { head } + 1;
                continue;
            }
        }
        kept.push(tokens[at]);
        at += 1;
    }
    (kept, apart)
}

/// The place of the brace that closes the one at `open`.
fn closing(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0;
    let end = tokens[open..].iter().position(|token| {
        depth += i32::from(*token == "{") - i32::from(*token == "}");
        depth == 0
    });
    end.map_or(tokens.len(), |end| open + end)
}

/// Each path of a tree such as `a::{b, c::d as e}`, with the name that it gets here.
fn leaves(tree: &[&str], prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let mut path = prefix.to_vec();
    for (at, token) in tree.iter().enumerate() {
        match *token {
            "::" => {}
            "{" => {
                let inner = &tree[at + 1..closing(tree, at)];
                let mut depth = 0;
                let parts = inner.split(|token| {
                    depth += i32::from(*token == "{") - i32::from(*token == "}");
                    depth == 0 && *token == ","
                });
                return parts.filter(|part| !part.is_empty()).flat_map(|part| leaves(part, &path)).collect();
            }
            "as" => return vec![(path, tree[at + 1].to_owned())],
            word => path.push(word.to_owned()),
        }
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = path.last().cloned().unwrap_or_default();
    vec![(path, name)]
}

/// A file: the paths that it names, and those that it hands on under a name.
#[derive(Default)]
struct File {
    named: Vec<Vec<String>>,
    handed_on: BTreeMap<String, Vec<String>>,
}

impl File {
    fn read(tokens: &[&str]) -> Self {
        let (mut file, mut at) = (Self::default(), 0);
        while at < tokens.len() {
            if tokens[at] == "use" {
                let end = tokens[at..].iter().position(|token| *token == ";").unwrap_or_default() + at;
                let is_public = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                for (path, name) in leaves(&tokens[at + 1..end], &[]) {
                    if is_public {
                        file.handed_on.insert(name, path.clone());
                    } else {
                        file.named.push(path);
                    }
                }
                at = end;
            } else if tokens.get(at + 1) == Some(&"::") && tokens[at] != ">" {
                let pairs = tokens[at + 1..].chunks_exact(2).take_while(|pair| pair[0] == "::");
                let more = pairs.map(|pair| pair[1].to_owned());
                let path: Vec<String> = std::iter::once(tokens[at].to_owned()).chain(more).collect();
                at += 2 * (path.len() - 1);
                file.named.push(path);
            }
            at += 1;
        }
        file
    }
}

struct Crate(BTreeMap<Module, File>);

impl Crate {
    fn read(source: &Path) -> Self {
        let (mut files, mut tests) = (BTreeMap::new(), Vec::new());
        let mut folders = vec![(source.to_owned(), Module::new())];
        while let Some((folder, module)) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
                let below = |name: &str| [module.clone(), vec![name.to_owned()]].concat();
                let Some(stem) = name.strip_suffix(".rs") else {
                    folders.extend(path.is_dir().then(|| (path, below(&name))));
                    continue;
                };
                let own = if matches!(stem, "lib" | "main" | "mod") { module.clone() } else { below(stem) };
                let text = fs::read_to_string(&path).unwrap();
                let (tokens, apart) = without_tests(&tokens(&text));
                tests.extend(apart.into_iter().map(|name| [own.clone(), vec![name.to_owned()]].concat()));
                files.insert(own, File::read(&tokens));
            }
        }
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self(files)
    }

    /// The file that defines what `path` names in `from`; none for another crate.
    fn file_of(&self, from: &[String], path: &[String], depth: u32) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let absolute = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [from, rest].concat(),
            "super" => {
                let (parent, mut rest) = (from.split_last()?.1, rest);
                let mut parent = parent.to_vec();
                while let Some(("super", more)) =
                    rest.split_first().map(|(first, more)| (first.as_str(), more))
                {
                    parent.pop()?;
                    rest = more;
                }
                [&parent, rest].concat()
            }
            _ if self.0.contains_key(&[from, std::slice::from_ref(first)].concat()) => [from, path].concat(),
            _ => return None,
        };
        let len = (0..=absolute.len()).rev().find(|len| self.0.contains_key(&absolute[..*len]))?;
        let (module, rest) = absolute.split_at(len);
        let handed_on = rest.first().and_then(|name| self.0[module].handed_on.get(name));
        match handed_on.filter(|_| depth < 8) {
            Some(path) => {
                let path = [path, &rest[1..]].concat();
                Some(self.file_of(module, &path, depth + 1).unwrap_or_else(|| module.to_vec()))
            }
            None => Some(module.to_vec()),
        }
    }

    fn edges(&self) -> Edges {
        let imports = |(module, file): (&Module, &File)| {
            let own = file.named.iter().filter_map(|path| self.file_of(module, path, 0));
            // A parent that hands on what its children define does not need them itself.
            let others = file.handed_on.values().filter_map(|path| self.file_of(module, path, 0));
            let all = own.chain(others.filter(|to| !to.starts_with(module)));
            (module.clone(), all.filter(|to| to != module).collect())
        };
        self.0.iter().map(imports).collect()
    }
}

fn reached(from: &Module, edges: &Edges) -> BTreeSet<Module> {
    let (mut all, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(edges[next].iter().filter(|to| all.insert((*to).clone())));
    }
    all
}

/// The sets of files that reach each other.
fn circles(edges: &Edges) -> BTreeSet<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|module| (module, reached(module, edges))).collect();
    let circle = |module: &Module| {
        let back = |to: &&Module| reached[to].contains(module);
        reached[module].iter().filter(back).cloned().collect::<BTreeSet<Module>>()
    };
    edges.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

fn names(circle: &BTreeSet<Module>) -> Vec<String> {
    circle.iter().map(|module| if module.is_empty() { "lib".to_owned() } else { module.join("/") }).collect()
}

#[test]
fn no_more_than_three_files_of_a_crate_import_each_other_in_a_circle() {
    let is_known = |name: &str, circle: &[String]| {
        let listed = |files: &[&str]| circle.iter().all(|file| files.contains(&file.as_str()));
        KNOWN.iter().any(|(of, files)| *of == name && listed(files))
    };
    let (mut bad, mut crates) = (Vec::new(), 0);
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let edges = Crate::read(&entry.path().join("src")).edges();
        crates += usize::from(edges.values().any(|imports| !imports.is_empty()));
        let circles = circles(&edges).into_iter().filter(|circle| circle.len() > MOST);
        let new = circles.map(|circle| names(&circle)).filter(|circle| !is_known(&name, circle));
        bad.extend(new.map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    assert!(crates > 10, "imports of {crates} crates were found");
    assert!(bad.is_empty(), "files import each other in a circle:\n{}", bad.join("\n"));
}

#[test]
fn imports_are_found_wherever_they_stand_and_through_names_that_are_handed_on() {
    let code = r##"
        //! use crate::no1;
        pub(crate) use inner::Kept;
        use crate::{a::{self, B as C}, d::e::F};
        const T: &str = r#"use crate::no2;"#; const Q: char = '"';
        fn f<'l>(x: super::G) -> crate::h::I { x.map(self::j::K::l) }
        #[cfg(test)]
        mod tests { use crate::no3; fn g() { if true {} } }
        #[cfg(test)]
        mod more;
        use crate::last;
    "##;
    let (tokens, apart) = without_tests(&tokens(code));
    assert_eq!(apart, ["more"]);
    let file = File::read(&tokens);
    let mut found: Vec<String> = file.named.iter().map(|path| path.join("::")).collect();
    found.sort();
    let expected = [
        "crate::a",
        "crate::a::B",
        "crate::d::e::F",
        "crate::h::I",
        "crate::last",
        "self::j::K::l",
        "super::G",
    ];
    assert_eq!(found, expected);
    assert_eq!(file.handed_on["Kept"], ["inner", "Kept"]);
}
