//! Prints the checked tree as the program that runs, and maps places.

use std::path::PathBuf;

use oxc::{
    ast::ast::Program,
    codegen::{Codegen, CodegenOptions, CommentOptions},
};

use super::verify::SLASH;
use crate::script::Place;

/// Returns the text of `program` and its places, in order of the printed text.
///
/// The text ends with a line feed, and no `<!--` and no line that begins with `-->` is a token of it.
pub(super) fn print(program: &Program<'_>) -> (String, Vec<Place>) {
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        // With an indent, deep nesting would make a text many times longer.
        indent_width: 0,
        source_map_path: Some(PathBuf::new()),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(program);
    let places = printed.map.map_or_else(Vec::new, |map| {
        map.get_tokens()
            .map(|token| Place {
                printed: (token.get_dst_line(), token.get_dst_col()),
                source: (token.get_src_line(), token.get_src_col()),
            })
            .collect()
    });
    let code = if printed.code.contains(SLASH) { printed.code.replace(SLASH, "/") } else { printed.code };
    (code, places)
}
