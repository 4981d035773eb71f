//! Structures side by side: what cases have in common as rows, their last word as columns.

use super::case_html;
use crate::draw::escape;
use crate::results::Cell;
use crate::{Better, text};

/// Most columns that stand beside each other.
const COLUMNS_MAX: usize = 8;

/// A row: what is common to some cases, a metric, and its value for each column, where there is one.
struct Row<'c> {
    common: &'c str,
    metric: &'c str,
    unit: &'c str,
    values: Vec<Option<f64>>,
}

/// The table, or nothing where cases have no word that tells few things apart.
pub(super) fn table(cells: &[&Cell]) -> String {
    let Some((columns, rows)) = side_by_side(cells) else { return String::new() };
    let mut page = String::from(
        "<h3>Side by side</h3>\n<div class=\"scroll\"><table class=\"overview\">\n<thead><tr><th scope=\"col\">case</th>\
         <th scope=\"col\">metric</th>",
    );
    for column in &columns {
        page.push_str(&format!("<th scope=\"col\" class=\"n\">{}</th>", escape(column)));
    }
    page.push_str("</tr></thead>\n");
    for group in rows.chunk_by(|left, right| left.common == right.common) {
        page.push_str("<tbody>\n");
        for (index, row) in group.iter().enumerate() {
            let head = match index {
                0 => format!("<th scope=\"rowgroup\" rowspan=\"{}\">{}</th>", group.len(), case_html(row.common)),
                _ => String::new(),
            };
            page.push_str(&format!("<tr>{head}{}</tr>\n", row.html(&columns)));
        }
        page.push_str("</tbody>\n");
    }
    page + "</table></div>\n"
}

fn side_by_side<'c>(cells: &[&'c Cell]) -> Option<(Vec<&'c str>, Vec<Row<'c>>)> {
    let split = |cell: &&'c Cell| cell.figure().case.rsplit_once('/').map(|(common, last)| (*cell, common, last));
    let parted: Vec<(&Cell, &str, &str)> = cells.iter().filter_map(split).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (_, _, last) in &parted {
        if !columns.contains(last) {
            columns.push(last);
        }
    }
    if !(2..=COLUMNS_MAX).contains(&columns.len()) {
        return None;
    }
    let mut rows: Vec<Row<'c>> = Vec::new();
    for (cell, common, last) in parted {
        let figure = cell.figure();
        let found = rows.iter().position(|row| row.common == common && row.metric == figure.metric);
        let index = found.unwrap_or_else(|| {
            // Behind the last row of what is common, so that these stand together.
            let place = rows.iter().rposition(|row| row.common == common).map_or(rows.len(), |last| last + 1);
            let values = vec![None; columns.len()];
            rows.insert(place, Row { common, metric: &figure.metric, unit: &figure.unit, values });
            place
        });
        let column = columns.iter().position(|known| *known == last)?;
        rows[index].values[column] = Some(cell.mean());
    }
    rows.retain(|row| row.values.iter().flatten().count() > 1);
    (!rows.is_empty()).then_some((columns, rows))
}

impl Row<'_> {
    /// The best of the values, if they differ and one way is better.
    fn best(&self) -> Option<f64> {
        let values = || self.values.iter().flatten().copied();
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let best = match Better::of(self.metric) {
            Better::Less => least,
            Better::More => most,
            Better::Neither => return None,
        };
        (least < most).then_some(best)
    }

    fn html(&self, columns: &[&str]) -> String {
        let words = text::words(self.metric);
        // As in `reads per op`, which needs no unit behind it.
        let is_said = words.split(' ').any(|word| word == self.unit);
        let unit = if is_said { String::new() } else { format!(" <span class=\"unit\">{}</span>", escape(self.unit)) };
        let mut row = format!("<td class=\"metric\">{}{unit}</td>", escape(&words));
        for (value, column) in self.values.iter().zip(columns) {
            let number = value.map(text::number).unwrap_or_default();
            let is_best = value.is_some() && *value == self.best();
            let number = if is_best { format!("<strong>{number}</strong>") } else { number };
            row.push_str(&format!("<td class=\"n\" data-label=\"{}\">{number}</td>", escape(column)));
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;
    use crate::{Figure, Scale};

    fn cells(figures: &[(&str, &'static str, f64)]) -> Vec<Cell> {
        let figure =
            |&(case, metric, value): &(&str, &'static str, f64)| Figure::new("x", case, metric, value, "reads");
        Results { figures: figures.iter().map(figure).collect(), scale: Scale::Full }.cells()
    }

    #[test]
    fn what_cases_have_in_common_is_a_row_and_the_best_value_stands_out() {
        let cells = cells(&[
            ("8/get/mu", "reads_per_op", 1.9),
            ("8/get/mu", "evenness", 0.5),
            ("8/get/nandu", "reads_per_op", 1.0),
            ("8/get/nandu", "evenness", 0.5),
            ("8/put/mu", "reads_per_op", 2.5),
            ("alone", "reads_per_op", 1.0),
        ]);
        let cells: Vec<&Cell> = cells.iter().collect();
        let (columns, rows) = side_by_side(&cells).unwrap();
        assert_eq!(columns, ["mu", "nandu"]);
        let rows: Vec<_> = rows.iter().map(|row| (row.common, row.metric, row.best())).collect();
        // What one structure alone has is not compared, and equal values have no best one.
        assert_eq!(rows, [("8/get", "reads_per_op", Some(1.0)), ("8/get", "evenness", None)]);
        assert_eq!(table(&cells).matches("<strong>1</strong>").count(), 1);
    }

    #[test]
    fn nothing_to_compare_makes_no_table() {
        let lone = cells(&[("a", "reads_per_op", 1.0), ("b/c", "reads_per_op", 1.0)]);
        assert_eq!(table(&lone.iter().collect::<Vec<_>>()), "");
        let many: Vec<String> = (0..9).map(|index| format!("a/{index}")).collect();
        let many = cells(&many.iter().map(|case| (case.as_str(), "reads_per_op", 1.0)).collect::<Vec<_>>());
        assert_eq!(table(&many.iter().collect::<Vec<_>>()), "");
    }
}
