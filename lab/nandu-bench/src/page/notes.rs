//! The markup of notes: paragraphs parted by empty lines, lists of lines that begin with `* `, code between backticks.

use crate::draw::escape;

/// Notes as HTML.
pub(super) fn html(notes: &str) -> String {
    let mut page = String::new();
    for block in notes.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        if block.starts_with("* ") {
            let items = format!("\n{block}");
            let items = items.split("\n* ").skip(1).map(|item| format!("<li>{}</li>", inline(item)));
            page.push_str(&format!("<ul>{}</ul>\n", items.collect::<String>()));
        } else {
            page.push_str(&format!("<p>{}</p>\n", inline(block)));
        }
    }
    page
}

/// Text with code between backticks; a last backtick without a partner stands for itself.
pub(super) fn inline(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`') else { break };
        html.push_str(&format!("{}<code>{}</code>", escape(before), escape(code)));
        rest = after;
    }
    html + &escape(rest)
}

#[cfg(test)]
mod tests {
    use super::{html, inline};

    #[test]
    fn notes_are_paragraphs_lists_and_code() {
        let page = html("One `a < b`\ngoes on.\n\n* first\n  still\n* second\n\nEnd.");
        let expected = "<p>One <code>a &lt; b</code>\ngoes on.</p>\n<ul><li>first\n  still</li><li>second</li></ul>\n<p>End.</p>\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn nothing_in_notes_is_taken_for_html() {
        assert_eq!(inline("<b> & `x` and ` alone"), "&lt;b&gt; &amp; <code>x</code> and ` alone");
    }
}
