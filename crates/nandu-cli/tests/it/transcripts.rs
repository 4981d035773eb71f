//! What the command prints, word for word.

/// `TRYCMD=overwrite cargo test -p nandu-cli` writes the transcripts anew; read the difference before committing it.
#[test]
fn transcripts_are_as_recorded() {
    trycmd::TestCases::new().env("COLUMNS", "80").env("NO_COLOR", "1").case("tests/cmd/*.trycmd");
}
