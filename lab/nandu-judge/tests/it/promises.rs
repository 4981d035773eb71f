//! The file of promises, and that each is measured.

use nandu_judge::{Judge, PromiseError, Promises};

/// What the repository promises.
pub(crate) const PROMISES: &str = include_str!("../../../../promises.toml");

/// A promise of this id with these limits.
pub(crate) fn promise(id: &str, scope: &str, more: &str) -> String {
    format!(
        "[[promise]]\nid = \"{id}\"\nsentence = \"It does.\"\nunit = \"programs\"\ndirection = \"at most\"\nscope = \"{scope}\"\nshort = true\n{more}\n"
    )
}

#[test]
fn every_promise_has_a_measurement() {
    let promises = Promises::parse(PROMISES).unwrap();
    let without: Vec<&str> =
        promises.all.iter().filter(|promise| !Judge::knows(promise)).map(|promise| promise.id.as_str()).collect();
    assert_eq!(without, Vec::<&str>::new());
    assert!(promises.all.len() > 20);
}

#[test]
fn a_promise_of_an_unknown_id_or_shape_is_refused() {
    let refused = |text: &str| Promises::parse(text).unwrap_err().to_string();
    let limits = "limits = [{ case = \"\", limit = 1 }]";
    let twice = [promise("a", "store", limits), promise("a", "store", limits)].concat();
    assert_eq!(refused(&twice), "promises.toml: two promises are called `a`");
    assert!(refused(&promise("a", "store", "limits = []")).contains("the cases of `a`"));
    let same = "limits = [{ case = \"x\", limit = 1 }, { case = \"x\", limit = 2 }]";
    assert!(refused(&promise("a", "store", same)).contains("the cases of `a`"));
    assert!(refused(&promise("a", "shop", limits)).contains("shop"));
    assert!(refused(&promise("a", "store", &format!("{limits}\nlimt = 1"))).contains("limt"));
    let error = Promises::parse(PROMISES).unwrap().only(&["updates".to_owned()]).unwrap_err();
    assert!(matches!(&error, PromiseError::Unknown(id, known) if id == "updates" && known.contains("update, ")));
}

#[test]
fn those_asked_for_come_in_the_order_of_the_file() {
    let only = ["lines", "update"].map(str::to_owned);
    let promises = Promises::parse(PROMISES).unwrap().only(&only).unwrap();
    assert_eq!(promises.all.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["update", "lines"]);
}
