//! One number that an experiment found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One number, as one JSON line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the experiment, as `core/million`.
    pub experiment: Cow<'static, str>,
    /// Which of its cases, as `8+8/insertion/mu`.
    pub case: String,
    /// What was measured, as `reads_per_op`.
    pub metric: Cow<'static, str>,
    /// The number, to six decimals.
    pub value: f64,
    /// Its unit: `programs`, `reads`, `pages`, `ms`, `bytes`, `ratio` and the like.
    pub unit: Cow<'static, str>,
    /// The number that a publication states for the same case, where there is one.
    pub published: Option<f64>,
    /// The number that an independent model of the same case gives, where there is one.
    pub model: Option<f64>,
    /// The seed, where a run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Figure {
    /// A number that nobody else states. Decimals beyond the sixth are rounded off: they say nothing.
    pub fn new(
        experiment: &'static str,
        case: &str,
        metric: impl Into<Cow<'static, str>>,
        value: f64,
        unit: &'static str,
    ) -> Figure {
        Figure {
            experiment: experiment.into(),
            case: case.to_owned(),
            metric: metric.into(),
            value: (value * 1e6).round() / 1e6,
            unit: unit.into(),
            published: None,
            model: None,
            seed: None,
        }
    }

    /// The same with the number of a publication beside it.
    #[must_use]
    pub fn with_published(self, published: Option<f64>) -> Figure {
        Figure { published, ..self }
    }

    /// The same with the number of a model beside it.
    #[must_use]
    pub fn with_model(self, model: Option<f64>) -> Figure {
        Figure { model, ..self }
    }

    /// As one line of JSON, the fields in the order in which they stand above.
    ///
    /// ```
    /// use nandu_bench::Figure;
    ///
    /// let figure = Figure::new("core/million", "slc-mode", "pages_live", 2284.0, "pages").with_model(Some(2252.0));
    /// assert_eq!(
    ///     figure.to_json(),
    ///     r#"{"experiment":"core/million","case":"slc-mode","metric":"pages_live","value":2284.0,"unit":"pages","published":null,"model":2252.0}"#
    /// );
    /// ```
    pub fn to_json(&self) -> String {
        // Text, numbers and nothing else: there is no value that JSON cannot say, since what is not finite becomes null.
        serde_json::to_string(self).unwrap_or_default()
    }
}
