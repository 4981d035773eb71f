//! Which columns of a table hold the key and the value.

use csv::ByteRecord;
use serde_json::{Map, Value};

use super::formats::{KEY, KEY_HEX, VALUE, VALUE_HEX};
use crate::{record, units};

/// What the command line says about columns or fields, by name or by number from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) values: &'a [String],
    /// Whether the first row names the columns, if it says so.
    pub(super) header: Option<bool>,
}

/// The columns of a table.
pub(super) struct Columns {
    key: Column,
    values: Values,
    names: Option<Vec<String>>,
    width: usize,
    /// Whether the first row is no record.
    pub(super) is_header: bool,
}

#[derive(Clone, Copy)]
struct Column {
    index: usize,
    is_hex: bool,
}

enum Values {
    /// The value is the text of the column.
    One(Column),
    /// The value is a JSON object of the columns, or an array where they have no names.
    Several(Vec<usize>),
}

impl Columns {
    /// Finds the columns in the first row of a table. Where the second row makes it likely that the first is a header and nothing says
    /// whether it is, that is an error: a wrong guess would lose a record or add one.
    pub(super) fn find(first: &ByteRecord, second: Option<&ByteRecord>, wishes: Wishes<'_>) -> Result<Columns, String> {
        let names: Vec<String> = first.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let is_name = |wish: &str| wish.parse::<usize>().is_err();
        let is_export = matches!(&names[..], [key, value]
            if (key == KEY || key == KEY_HEX) && (value == VALUE || value == VALUE_HEX));
        let is_named = is_export || wishes.key.into_iter().chain(strs(wishes.values)).any(is_name);
        let is_header = match wishes.header {
            Some(is_header) => is_header,
            None if is_named => true,
            None if second.is_some_and(|second| may_be_header(first, second)) => {
                return Err(format!("line 1 may name the columns ({}); say --header or --no-header", names.join(", ")));
            }
            None => false,
        };
        let width = names.len();
        let names = is_header.then_some(names);
        let column = |wish: &str| find(wish, names.as_deref(), width);
        let named = |wishes: [&str; 2]| {
            names.as_ref().and_then(|names| {
                let index = names.iter().position(|name| wishes.contains(&name.as_str()))?;
                Some(Column { index, is_hex: is_hex(&names[index]) })
            })
        };
        let key = match wishes.key {
            Some(wish) => column(wish)?,
            None => named([KEY, KEY_HEX]).unwrap_or(Column { index: 0, is_hex: false }),
        };
        let values = match wishes.values {
            [one] => Values::One(column(one)?),
            [] => match named([VALUE, VALUE_HEX]) {
                Some(value) => Values::One(value),
                None => {
                    let others: Vec<usize> = (0..width).filter(|&index| index != key.index).collect();
                    match others[..] {
                        [] => return Err("there is no column for the value".to_owned()),
                        [index] => Values::One(Column { index, is_hex: false }),
                        _ => Values::Several(others),
                    }
                }
            },
            several => {
                let columns: Result<Vec<Column>, String> = strs(several).map(column).collect();
                Values::Several(columns?.into_iter().map(|column| column.index).collect())
            }
        };
        Ok(Columns { key, values, names, width, is_header })
    }

    /// The key and the value in a row.
    pub(super) fn pick(&self, row: &ByteRecord) -> Result<(Vec<u8>, Vec<u8>), String> {
        if row.len() != self.width {
            return Err(format!(
                "{}, where the first line has {}",
                units::things(row.len() as u64, "field"),
                self.width
            ));
        }
        let key = self.field(row, self.key)?;
        let value = match &self.values {
            Values::One(column) => self.field(row, *column)?,
            Values::Several(columns) => self.several(row, columns).to_string().into_bytes(),
        };
        Ok((key, value))
    }

    fn field(&self, row: &ByteRecord, column: Column) -> Result<Vec<u8>, String> {
        let bytes = &row[column.index];
        if !column.is_hex {
            return Ok(bytes.to_vec());
        }
        record::from_digits(bytes).ok_or_else(|| format!("column {} is not hexadecimal digits", column.index + 1))
    }

    fn several(&self, row: &ByteRecord, columns: &[usize]) -> Value {
        let text = |index: usize| Value::from(String::from_utf8_lossy(&row[index]));
        match &self.names {
            Some(names) => {
                let fields = columns.iter().map(|&index| (names[index].clone(), text(index)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            None => columns.iter().map(|&index| text(index)).collect(),
        }
    }
}

/// Whether the first row looks like names of columns: no field of it is empty or a number, and below one of them stands a number.
fn may_be_header(first: &ByteRecord, second: &ByteRecord) -> bool {
    let is_number = |field: &[u8]| str::from_utf8(field).is_ok_and(|text| text.trim().parse::<f64>().is_ok());
    first.iter().all(|field| !field.trim_ascii().is_empty() && !is_number(field)) && second.iter().any(is_number)
}

fn strs(texts: &[String]) -> impl Iterator<Item = &str> {
    texts.iter().map(String::as_str)
}

fn is_hex(name: &str) -> bool {
    name == KEY_HEX || name == VALUE_HEX
}

fn find(wish: &str, names: Option<&[String]>, width: usize) -> Result<Column, String> {
    if let Some(index) = names.and_then(|names| names.iter().position(|name| name == wish)) {
        return Ok(Column { index, is_hex: is_hex(wish) });
    }
    match wish.parse::<usize>() {
        Ok(number) if (1..=width).contains(&number) => Ok(Column { index: number - 1, is_hex: false }),
        Ok(_) => Err(format!("there is no column {wish}; the first line has {width}")),
        Err(_) => Err(format!("there is no column '{wish}'; there are {}", names.unwrap_or_default().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(first: &[&str], row: &[&str], key: Option<&str>, values: &[&str]) -> (bool, Result<String, String>) {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        let wishes = Wishes { key, values: &values, header: None };
        match Columns::find(&ByteRecord::from(first), None, wishes) {
            Err(why) => (false, Err(why)),
            Ok(columns) => {
                let picked = columns.pick(&ByteRecord::from(row));
                let text = |(key, value): (Vec<u8>, Vec<u8>)| {
                    format!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value))
                };
                (columns.is_header, picked.map(text))
            }
        }
    }

    #[test]
    fn columns_are_found_by_name_by_number_and_by_what_export_writes() {
        assert_eq!(pick(&["a", "b"], &["x", "y"], None, &[]), (false, Ok("x=y".into())));
        assert_eq!(pick(&["a", "b"], &["x", "y"], Some("2"), &[]), (false, Ok("y=x".into())));
        assert_eq!(pick(&["a", "b"], &["x", "y"], Some("b"), &[]), (true, Ok("y=x".into())));
        assert_eq!(pick(&["key", "value_hex"], &["x", "4142"], None, &[]), (true, Ok("x=AB".into())));
        assert_eq!(pick(&["key", "other"], &["x", "y"], None, &[]), (false, Ok("x=y".into())));
    }

    #[test]
    fn a_row_that_may_be_a_header_is_asked_about() {
        let find = |first: &[&str], second: &[&str], header| {
            let wishes = Wishes { key: None, values: &[], header };
            let columns = Columns::find(&ByteRecord::from(first), Some(&ByteRecord::from(second)), wishes);
            columns.map(|columns| columns.is_header)
        };
        let (names, readings) = (["time", "celsius"], ["noon", "21.5"]);
        let asked = "line 1 may name the columns (time, celsius); say --header or --no-header";
        assert_eq!(find(&names, &readings, None), Err(asked.to_owned()));
        assert_eq!(find(&names, &readings, Some(true)), Ok(true));
        assert_eq!(find(&names, &readings, Some(false)), Ok(false));
        assert_eq!(find(&["noon", "20.1"], &readings, None), Ok(false));
        assert_eq!(find(&["lamp", "on"], &["fan", "off"], None), Ok(false));
        assert_eq!(find(&["key", "value"], &["a", "1"], None), Ok(true), "that is what export writes");
    }

    #[test]
    fn several_columns_become_json() {
        let row = ["x", "y", "z"];
        assert_eq!(pick(&["a", "b", "c"], &row, None, &[]), (false, Ok(r#"x=["y","z"]"#.into())));
        assert_eq!(pick(&["a", "b", "c"], &row, Some("b"), &[]), (true, Ok(r#"y={"a":"x","c":"z"}"#.into())));
        assert_eq!(pick(&["a", "b", "c"], &row, Some("1"), &["c", "b"]), (true, Ok(r#"x={"b":"y","c":"z"}"#.into())));
    }

    #[test]
    fn what_is_wrong_with_a_row_is_said() {
        assert_eq!(pick(&["a", "b"], &["x"], None, &[]).1.unwrap_err(), "1 field, where the first line has 2");
        assert_eq!(pick(&["a"], &["x"], None, &[]).1.unwrap_err(), "there is no column for the value");
        assert_eq!(
            pick(&["a", "b"], &["x", "y"], Some("c"), &[]).1.unwrap_err(),
            "there is no column 'c'; there are a, b"
        );
        assert_eq!(
            pick(&["key_hex", "value"], &["0", "y"], None, &[]).1.unwrap_err(),
            "column 1 is not hexadecimal digits"
        );
    }
}
