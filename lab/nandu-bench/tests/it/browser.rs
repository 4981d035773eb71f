//! The page of results as a browser shows it.

use std::io::{self, Write};

use nandu_bench::{experiments, page};
use serde_json::json;

use crate::devtools::{Browser, find};
use crate::page::{plot_count, sample};

/// Things that are nowhere to be seen, although they should be.
const INVISIBLE: &str = "[...document.querySelectorAll('h1, h2, table, figure, svg, td.ours')]
    .filter(element => { const box = element.getBoundingClientRect(); return box.width < 1 || box.height < 1; })
    .map(element => element.outerHTML.slice(0, 100))";

/// What reaches beyond the right edge, unless it can be scrolled in a box of its own.
const TOO_WIDE: &str = "[...document.body.querySelectorAll('*')]
    .filter(element => !element.closest('.scroll') && !element.closest('thead'))
    .filter(element => element.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(element => element.outerHTML.slice(0, 100))";

const COUNTS: &str = "['table.figures', 'svg', 'section'].map(name => document.querySelectorAll(name).length)";

#[test]
fn a_browser_shows_all_of_the_page_on_any_screen_and_complains_of_nothing() {
    let Some(program) = find() else {
        // Written past the capture of the test's output, so that it is seen.
        let _ =
            writeln!(io::stderr(), "SKIPPED: the page was opened in no browser, for none was found (NANDU_BROWSER)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, page::html(&sample()).unwrap()).unwrap();
    let address = format!("file://{}", file.display());

    let mut browser = Browser::start(&program);
    browser.open(&address);
    let tables = experiments::all().count() + 1;
    assert_eq!(browser.evaluate(COUNTS), json!([tables, plot_count(), tables]));
    for width in [320, 375, 768, 1280] {
        browser.set_width(width);
        assert_eq!(browser.evaluate("innerWidth"), json!(width));
        let beyond = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(beyond, json!(0), "the page scrolls sideways at {width}");
        assert_eq!(browser.evaluate(TOO_WIDE), json!([]), "{width}");
        assert_eq!(browser.evaluate(INVISIBLE), json!([]), "{width}");
    }

    // A picture has the colours of the page around it.
    let colours = "[document.body, document.querySelector('svg text')].map(e => getComputedStyle(e).color) + ' on '
        + getComputedStyle(document.body).backgroundColor + ', text of pictures '
        + getComputedStyle(document.querySelector('svg text')).fill";
    browser.set_scheme("light");
    assert_eq!(browser.evaluate(colours), json!(scheme("rgb(27, 29, 32)", "rgb(253, 253, 251)")));
    browser.set_scheme("dark");
    assert_eq!(browser.evaluate(colours), json!(scheme("rgb(227, 229, 232)", "rgb(21, 23, 26)")));

    let complaints = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed"];
    assert!(browser.reported(&complaints).is_empty(), "{:?}", browser.reported(&complaints));
    let requests = browser.reported(&["Network.requestWillBeSent"]);
    let addresses: Vec<&str> = requests.iter().filter_map(|event| event["params"]["request"]["url"].as_str()).collect();
    assert!(addresses.contains(&address.as_str()), "{addresses:?}");
    assert!(addresses.iter().all(|known| *known == address || known.starts_with("data:")), "{addresses:?}");
}

fn scheme(ink: &str, ground: &str) -> String {
    format!("{ink},{ink} on {ground}, text of pictures {ink}")
}
