//! The layers of the crate: which module may import which, and that no noise is forgotten.
//!
//! An import is any path through `crate`, `super` or a child module, in code or in its tests; it
//! leads to the file where the path ends, or to the root that re-exports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The top-level modules, lowest layer first: each imports from lower layers only.
const LAYERS: [&[&str]; 8] = [
    &["error"],
    &["bounds", "events", "pool", "simd"],
    &["math", "options", "random"],
    &["mechanisms"],
    &["cells", "columns", "neighbours", "probe", "run", "score", "sensitivity", "tables", "words"],
    &["audit", "divergence", "replacement"],
    &["lib"],
    &["python"],
];

/// Files by module path, without comments and texts: `run::job`, `run` for its mod.rs, `lib`.
type Files = BTreeMap<String, String>;

/// What each file imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn read(folder: &Path, module: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = if module.is_empty() { stem.into() } else { format!("{module}::{stem}") };
        if path.is_dir() {
            read(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = if stem == "mod" { module.into() } else { inner };
            files.insert(name, code(&fs::read_to_string(&path).unwrap()));
        }
    }
}

fn crate_files() -> Files {
    let mut files = Files::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rust"), "", &mut files);
    files
}

/// The text without comments, and without the texts in it.
fn code(text: &str) -> String {
    let mut bare = String::new();
    for line in text.lines() {
        let quoted = line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
        bare += quoted.split("//").next().unwrap();
        bare.push('\n');
    }
    // Who may see a name is no import.
    let mut parts = bare.split("pub(in ");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + "pub" + part.split_once(')').unwrap().1)
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// All paths that the tree of a `use`, or the start of an expression, names.
fn paths(text: &str) -> Vec<String> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut all, mut start) = (0, Vec::new(), 0);
        for (i, letter) in group.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    let inner = group[start..i].trim();
                    all.extend(if inner.is_empty() { Vec::new() } else { paths(inner) });
                    start = i + 1;
                }
                _ => {}
            }
            if letter == '}' && start == i + 1 {
                break;
            }
        }
        return all;
    }
    let end = text.find(|letter| !is_name(letter)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match rest.strip_prefix("::") {
        Some(rest) => {
            let inner = paths(rest).into_iter().map(|path| format!("{name}::{path}"));
            inner.map(|path| path.trim_end_matches("::").to_owned()).collect()
        }
        None => vec![name.to_owned()],
    }
}

/// Where the text names a module: the places after which `start` stands as a whole word.
fn places<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(start).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|letter| is_name(letter) || letter == ':')
    })
}

/// The file of a path from the crate's root: the longest part of it that is one.
fn file(files: &Files, path: &[&str]) -> Option<String> {
    (1..=path.len()).rev().map(|end| path[..end].join("::")).find(|name| files.contains_key(name))
}

fn graph(files: &Files) -> Graph {
    let mut graph = Graph::new();
    for (name, text) in files {
        let own: Vec<&str> = name.split("::").filter(|part| *part != "lib").collect();
        let tests = text.find("mod tests {").unwrap_or(text.len());
        let children = files.keys().filter_map(|other| {
            let parent = other.rsplit_once("::").map_or("lib", |(parent, _)| parent);
            (parent == name).then(|| other.rsplit("::").next().unwrap())
        });
        let starts = ["crate", "super", "self"].into_iter().chain(children);
        let mut imports = BTreeSet::new();
        for start in starts.filter(|start| *start != "lib") {
            for at in places(text, &format!("{start}::")) {
                for path in paths(&text[at..]) {
                    let mut from = own.clone();
                    if at > tests {
                        from.push("tests");
                    }
                    let mut parts = path.split("::").peekable();
                    if parts.next_if_eq(&"crate").is_some() {
                        from.clear();
                    }
                    parts.next_if_eq(&"self");
                    while parts.next_if_eq(&"super").is_some() {
                        from.pop();
                    }
                    from.extend(parts);
                    imports.insert(file(files, &from).unwrap_or_else(|| "lib".into()));
                }
            }
        }
        imports.remove(name);
        graph.insert(name.clone(), imports);
    }
    graph
}

/// The graph of top-level modules.
fn top_level(graph: &Graph) -> Graph {
    let top = |name: &str| name.split("::").next().unwrap().to_owned();
    let mut modules = Graph::new();
    for (name, imports) in graph {
        let own = modules.entry(top(name)).or_default();
        own.extend(imports.iter().map(|other| top(other)).filter(|other| *other != top(name)));
    }
    modules
}

/// The circles, each once: the names that reach each other.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: Graph = graph
        .keys()
        .map(|name| {
            let (mut seen, mut ahead) = (BTreeSet::new(), vec![name]);
            while let Some(next) = ahead.pop() {
                ahead.extend(graph[next].iter().filter(|other| seen.insert((*other).clone())));
            }
            (name.clone(), seen)
        })
        .collect();
    let mutual = |name: &String| -> Vec<String> {
        let back = |other: &&String| reached[*other].contains(name);
        reached[name].iter().filter(back).cloned().collect()
    };
    let all: BTreeSet<_> = graph.keys().map(mutual).filter(|circle| !circle.is_empty()).collect();
    all.into_iter().collect()
}

/// Imports that do not lead to a lower layer, and modules without a layer.
fn upward(modules: &Graph) -> Vec<String> {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut wrong = Vec::new();
    for (name, imports) in modules {
        if layer(name).is_none() {
            wrong.push(format!("{name} has no layer"));
        }
        let higher = imports.iter().filter(|other| layer(other) >= layer(name));
        wrong.extend(higher.map(|other| format!("{name} imports {other}")));
    }
    wrong
}

/// Noises that the table in mechanisms/mod.rs forgets: `file::Type`.
fn forgotten(files: &Files) -> Vec<String> {
    let table = files["mechanisms"].split("\nnoises! {").nth(1).expect("the table of noises");
    let table = table.split('}').next().unwrap();
    let rows: Vec<Vec<&str>> =
        table.split(';').map(|row| row.split_whitespace().collect()).collect();
    let mut missing = Vec::new();
    for (name, text) in files {
        let Some(file) = name.strip_prefix("mechanisms::") else { continue };
        for noise in text.split("impl Draw for ").skip(1) {
            let noise = noise.split(|letter| !is_name(letter)).next().unwrap();
            if !rows.iter().any(|row| row.contains(&file) && row.contains(&noise)) {
                missing.push(format!("{file}::{noise}"));
            }
        }
    }
    missing
}

/// Functions for Python whose body is not one call of `guarded`: a panic in them is no `Exception`.
fn unguarded(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files {
        for function in text.split("#[pyfunction]").skip(1) {
            let (head, rest) = function.split_once(" {\n").unwrap();
            let mut body = rest.split("\n}\n").next().unwrap().lines();
            // The lines of one statement are indented deeper than it, but for its last bracket.
            let whole = body.next().is_some_and(|line| line.starts_with("    guarded(||"))
                && body.all(|line| line.starts_with("     ") || line == "    })");
            if !whole {
                let function = head.split("fn ").nth(1).unwrap();
                found.push(format!("{name}::{}", function.split(['(', '<']).next().unwrap()));
            }
        }
    }
    found
}

/// Files of a planted crate.
fn planted(files: &[(&str, &str)]) -> Graph {
    graph(&files.iter().map(|&(name, text)| (name.to_owned(), code(text))).collect())
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let graph = graph(&crate_files());
    assert!(graph.len() > 50 && graph.values().flatten().count() > 150, "{graph:#?}");
    assert_eq!(circles(&graph), Vec::<Vec<String>>::new());
}

#[test]
fn no_top_level_modules_import_each_other_in_a_circle() {
    assert_eq!(circles(&top_level(&graph(&crate_files()))), Vec::<Vec<String>>::new());
}

#[test]
fn modules_import_from_lower_layers_only() {
    let modules = top_level(&graph(&crate_files()));
    assert_eq!(upward(&modules), Vec::<String>::new());
    assert!(!modules["neighbours"].contains("run"), "the search needs no trial loop");
    for name in LAYERS.concat() {
        assert!(modules.contains_key(name), "LAYERS has {name}, which is no module");
    }
}

#[test]
fn every_noise_is_in_the_table() {
    assert_eq!(forgotten(&crate_files()), Vec::<String>::new());
}

#[test]
fn no_panic_crosses_into_python() {
    let files = crate_files();
    let functions: usize = files.values().map(|text| text.matches("#[pyfunction]").count()).sum();
    assert!(functions > 20, "{functions}");
    assert_eq!(unguarded(&files), Vec::<String>::new());
}

#[test]
fn a_circle_is_found_and_named() {
    let files = [
        ("lib", "pub mod a;\npub use a::b::Thing;"),
        ("a", "mod b;\nmod c;\npub use b::Thing;"),
        ("a::b", "use std::fmt;\nuse super::{c::{self, Other}, none};\nuse crate::d;"),
        ("a::c", "// use super::b::Thing;\nfn f() { super::super::a::b::go() }"),
        ("d", "#[cfg(test)]\nmod tests {\n    use super::super::a::Thing;\n}"),
    ];
    let graph = planted(&files);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(graph["a::b"], names(&["a", "a::c", "d"]));
    assert_eq!(graph["a::c"], names(&["a::b"]));
    assert_eq!(graph["lib"], names(&["a::b"]));
    let circle: Vec<String> = vec!["a".into(), "a::b".into(), "a::c".into(), "d".into()];
    assert_eq!(circles(&graph), [circle]);
    assert_eq!(circles(&top_level(&graph)), [["a".to_owned(), "d".to_owned()]]);
}

#[test]
fn an_import_upwards_is_found_and_named() {
    let loose = planted(&[
        ("neighbours", "mod tree;"),
        ("neighbours::tree", "use crate::{\n    run::Job,\n    error::Error,\n};"),
        ("run", ""),
        ("error", ""),
        ("attic", ""),
    ]);
    assert_eq!(upward(&top_level(&loose)), ["attic has no layer", "neighbours imports run"]);
}

#[test]
fn a_noise_that_is_not_in_the_table_is_found_and_named() {
    let mut files = crate_files();
    files.insert("mechanisms::toy".into(), "impl Draw for Toy {}".into());
    let dptext = files.get_mut("mechanisms::dptext").unwrap();
    dptext.push_str("impl Draw for Fourth {}");
    assert_eq!(forgotten(&files), ["dptext::Fourth", "toy::Toy"]);
}

#[test]
fn a_function_for_python_that_may_panic_is_found_and_named() {
    let mut files = crate_files();
    let score = files.get_mut("python::score").unwrap();
    score.push_str("#[pyfunction]\nfn one<'py>(\n    x: u8,\n) -> u8 {\n    x + 1\n}\n");
    score.push_str("#[pyfunction]\nfn two(x: u8) -> PyResult<u8> {\n    guarded(|| Ok(x))?;\n");
    score.push_str("    Ok(x + 1)\n}\n");
    assert_eq!(unguarded(&files), ["python::score::one", "python::score::two"]);
}
