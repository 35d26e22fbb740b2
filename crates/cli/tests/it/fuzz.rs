//! The corpus of the fuzz target `config`.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

#[test]
fn every_configuration_of_the_corpus_is_taken_or_refused_with_lines() {
    for (name, bytes) in corpus::of("config") {
        println!("{name}");
        gatewright_cli::fuzz::config(&bytes);
    }
}
