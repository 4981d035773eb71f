//! Draws figures as SVG: bars or lines with axes, a legend, and the numbers of others as hollow marks.
//!
//! The colours are those of Okabe and Ito, which people who see colours differently can tell apart; series of lines have
//! marks of different shape as well. Text, axes and marks have the colour of the text around the picture, so that one
//! picture does for light and dark pages.

use std::error::Error;

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, Cross, PathElement, Rectangle, Text, TriangleMarker};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBAColor, RGBColor, TextStyle};

use crate::results::Cell;
use crate::text;
use crate::{Plot, PlotKind};

const WIDTH: u32 = 420;
const HEIGHT: u32 = 300;
const MARGIN: u32 = 10;
const LEFT_AREA: u32 = 62;
const LEGEND_ROW: i32 = 20;
/// Width of a letter, as near as it can be known without the font.
const LETTER: f64 = 6.6;
const LINE_HEIGHT: i32 = 15;
/// Most lines of a label below the axis.
const LABEL_LINES: usize = 2;
/// Most rows of labels below the axis, used in turn where neighbours would overlap.
const LABEL_ROWS: usize = 4;

const SERIES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0xF0, 0xE4, 0x42),
];
/// Series that have the same colour in every picture: those of [`SERIES`], in this order.
const NAMED: [&str; 3] = ["nandu", "mu", "bplus"];
/// Stands for the colour of the text around; no other colour is this one.
const INK: RGBColor = RGBColor(0x12, 0x34, 0x56);
const INK_TEXT: &str = "\"#123456\"";

type Outcome<T> = Result<T, Box<dyn Error>>;
type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
type Chart<'c, 's> = ChartContext<'c, SVGBackend<'s>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Whether there is any cell that a plot names.
pub(crate) fn is_drawn(plot: &Plot, cells: &[&Cell]) -> bool {
    cells.iter().any(|cell| cell.figure().metric == plot.metric && plot.place(&cell.figure().case).is_some())
}

/// A picture of the cells that a plot names; without axes if there is none of them.
///
/// # Errors
///
/// What the drawing library says; nothing is written, so there is no cause known for it.
pub(crate) fn svg(plot: &Plot, cells: &[&Cell]) -> Outcome<String> {
    let picture = Picture::of(plot, cells);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        picture.draw(&area)?;
        area.present()?;
    }
    let svg = svg.replace(INK_TEXT, "\"currentColor\"");
    let title = escape(&format!("{}: {} by {}", plot.title, plot.y, plot.x));
    let opening = format!("<svg role=\"img\" aria-label=\"{title}\" ");
    Ok(svg.replacen("<svg ", &opening, 1).replacen(">\n", &format!(">\n<title>{title}</title>\n"), 1))
}

/// The same as a file of its own, with its own colours for text and ground.
pub(crate) fn standalone(svg: &str) -> String {
    svg.replacen("<svg ", "<svg style=\"color:#1b1b1b;background:#fff\" ", 1)
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What is drawn, found among the cells.
struct Picture<'p> {
    plot: &'p Plot,
    /// Places along the horizontal axis, with where they are.
    places: Vec<(&'p str, f64)>,
    series: Vec<&'p str>,
    /// Where in [`SERIES`] the style of each series is.
    styles: Vec<usize>,
    marks: Vec<Mark>,
    is_bars: bool,
}

/// One cell.
struct Mark {
    place: usize,
    series: usize,
    least: f64,
    mean: f64,
    most: f64,
    published: Option<f64>,
    model: Option<f64>,
}

impl<'p> Picture<'p> {
    fn of(plot: &'p Plot, cells: &[&'p Cell]) -> Picture<'p> {
        let (mut places, mut series, mut marks) = (Vec::new(), Vec::new(), Vec::new());
        for cell in cells.iter().filter(|cell| cell.figure().metric == plot.metric) {
            let figure = cell.figure();
            let Some((place, name)) = plot.place(&figure.case) else { continue };
            marks.push(Mark {
                place: index_of(place, &mut places),
                series: index_of(name, &mut series),
                least: cell.least(),
                mean: cell.mean(),
                most: cell.most(),
                published: figure.published,
                model: figure.model,
            });
        }
        let numbers: Option<Vec<f64>> = places.iter().map(|place| number_of(place)).collect();
        let positions = match (plot.kind, numbers) {
            (PlotKind::Lines, Some(numbers)) => Some(numbers),
            (PlotKind::LogLines, Some(numbers)) if numbers.iter().all(|&number| number > 0.0) => {
                Some(numbers.into_iter().map(f64::log10).collect())
            }
            _ => None,
        };
        let positions = positions.unwrap_or_else(|| (0..places.len()).map(|index| index as f64).collect());
        let places = places.into_iter().zip(positions).collect();
        let styles = styles(&series);
        Picture { plot, places, series, styles, marks, is_bars: plot.kind == PlotKind::Bars }
    }

    fn draw(&self, area: &Area<'_>) -> Outcome<()> {
        if self.marks.is_empty() {
            return Ok(());
        }
        let legend_height = self.draw_legend(area)?;
        let at = || self.places.iter().map(|(_, at)| *at);
        let (first, last) = (at().fold(f64::INFINITY, f64::min), at().fold(f64::NEG_INFINITY, f64::max));
        let aside = if self.is_bars || first == last { 0.5 } else { (last - first) * 0.06 };
        let all = self.marks.iter().flat_map(|mark| [Some(mark.most), mark.published, mark.model]).flatten();
        let greatest = all.fold(0.0, f64::max);
        let top = if greatest > 0.0 { greatest * 1.08 } else { 1.0 };
        let labels = self.labels();
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .margin_top(legend_height)
            .x_label_area_size(labels.height())
            .y_label_area_size(LEFT_AREA)
            .build_cartesian_2d(first - aside..last + aside, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_labels(6)
            .y_max_light_lines(1)
            .y_desc(self.plot.y)
            .y_label_formatter(&|value| text::number(*value))
            .axis_style(INK.mix(0.7))
            .bold_line_style(INK.mix(0.15))
            .light_line_style(INK.mix(0.0))
            .axis_desc_style(font())
            .label_style(font())
            .draw()?;
        self.draw_labels(area, &chart, &labels)?;
        if self.is_bars { self.draw_bars(&mut chart) } else { self.draw_lines(&mut chart) }
    }

    /// How the labels below the axis are laid out.
    fn labels(&self) -> Labels {
        let room = f64::from(WIDTH - LEFT_AREA - 2 * MARGIN) / self.places.len() as f64;
        let lines: Vec<Vec<String>> =
            self.places.iter().map(|(label, _)| wrapped(label, (room / LETTER) as usize)).collect();
        let line_count = lines.iter().map(Vec::len).max().unwrap_or(0);
        let widest = lines.iter().map(|lines| width_of(lines)).fold(0.0, f64::max);
        // Labels of bars must all be there; along a line those that find no room are left out.
        let rows = if self.is_bars { ((widest + LETTER) / room).ceil() as usize } else { 1 };
        Labels { lines, line_count, rows: rows.clamp(1, LABEL_ROWS) }
    }

    /// Draws the legend above the picture; returns how high it is.
    fn draw_legend(&self, area: &Area<'_>) -> Outcome<u32> {
        let left = (MARGIN + LEFT_AREA) as i32;
        let (mut x, mut y) = (left, 16);
        let mut entry = |label: &str, draw: &dyn Fn((i32, i32)) -> Outcome<()>| -> Outcome<()> {
            let width = 24 + (label.chars().count() as f64 * LETTER) as i32 + 12;
            if x > left && x + width > WIDTH as i32 {
                (x, y) = (left, y + LEGEND_ROW);
            }
            draw((x + 7, y))?;
            area.draw(&Text::new(label.to_owned(), (x + 20, y), font().pos(Pos::new(HPos::Left, VPos::Center))))?;
            x += width;
            Ok(())
        };
        for (index, name) in self.series.iter().enumerate() {
            let label = if name.is_empty() { "measured" } else { name };
            let style = self.styles[index];
            entry(label, &|(x, y)| {
                if self.is_bars {
                    area.draw(&Rectangle::new([(x - 6, y - 6), (x + 6, y + 6)], bar_colour(style).filled()))?;
                } else {
                    area.draw(&PathElement::new([(x - 9, y), (x + 9, y)], colour(style).stroke_width(2)))?;
                    match style % 3 {
                        0 => area.draw(&Circle::new((x, y), 4, colour(style).filled()))?,
                        1 => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], colour(style).filled()))?,
                        _ => area.draw(&TriangleMarker::new((x, y), 5, colour(style).filled()))?,
                    }
                }
                Ok(())
            })?;
        }
        if self.marks.iter().any(|mark| mark.published.is_some()) {
            entry("published", &|at| Ok(area.draw(&Circle::new(at, 5, INK.stroke_width(2)))?))?;
        }
        if self.marks.iter().any(|mark| mark.model.is_some()) {
            entry("model", &|at| Ok(area.draw(&Cross::new(at, 4, INK.stroke_width(2)))?))?;
        }
        Ok((y + LEGEND_ROW) as u32)
    }

    /// The places below the horizontal axis, as far as they do not overlap, and what they are.
    fn draw_labels(&self, area: &Area<'_>, chart: &Chart<'_, '_>, labels: &Labels) -> Outcome<()> {
        let mut free_from = f64::NEG_INFINITY;
        let mut in_order: Vec<(&Vec<String>, f64)> =
            labels.lines.iter().zip(self.places.iter().map(|(_, at)| *at)).collect();
        in_order.sort_by(|left, right| left.1.total_cmp(&right.1));
        for (index, (lines, at)) in in_order.into_iter().enumerate() {
            let half = width_of(lines) / 2.0;
            let (x, y) = chart.backend_coord(&(at, 0.0));
            if !self.is_bars && f64::from(x) - half < free_from {
                continue;
            }
            free_from = f64::from(x) + half + LETTER;
            let row = (index % labels.rows * labels.line_count) as i32;
            for (line, nth) in lines.iter().zip(row..) {
                let place = (x, y + 6 + nth * LINE_HEIGHT);
                area.draw(&Text::new(line.clone(), place, font().pos(Pos::new(HPos::Center, VPos::Top))))?;
            }
        }
        let middle = ((WIDTH + LEFT_AREA) / 2) as i32;
        let style = font().pos(Pos::new(HPos::Center, VPos::Bottom));
        area.draw(&Text::new(self.plot.x.to_owned(), (middle, HEIGHT as i32 - 4), style))?;
        Ok(())
    }

    fn draw_bars(&self, chart: &mut Chart<'_, '_>) -> Outcome<()> {
        // A single bar as wide as its place would be a wall.
        let all = if self.series.len() == 1 { 0.5 } else { 0.8 };
        let width = all / self.series.len() as f64;
        for mark in &self.marks {
            let left = self.places[mark.place].1 - all / 2.0 + mark.series as f64 * width;
            let (right, middle) = (left + width * 0.92, left + width * 0.46);
            let bar = Rectangle::new([(left, 0.0), (right, mark.mean)], bar_colour(self.styles[mark.series]).filled());
            chart.draw_series([bar])?;
            draw_spread(chart, mark, middle)?;
            draw_stated(chart, mark, middle, INK)?;
        }
        Ok(())
    }

    fn draw_lines(&self, chart: &mut Chart<'_, '_>) -> Outcome<()> {
        for series in 0..self.series.len() {
            let marks = self.marks.iter().filter(|mark| mark.series == series);
            let mut marks: Vec<(f64, &Mark)> = marks.map(|mark| (self.places[mark.place].1, mark)).collect();
            marks.sort_by(|left, right| left.0.total_cmp(&right.0));
            let style = colour(self.styles[series]);
            let points: Vec<(f64, f64)> = marks.iter().map(|(x, mark)| (*x, mark.mean)).collect();
            chart.draw_series([PathElement::new(points.clone(), style.stroke_width(2))])?;
            match self.styles[series] % 3 {
                0 => drop(chart.draw_series(points.iter().map(|at| Circle::new(*at, 4, style.filled())))?),
                1 => drop(chart.draw_series(points.iter().map(|at| {
                    plotters::element::EmptyElement::at(*at) + Rectangle::new([(-4, -4), (4, 4)], style.filled())
                }))?),
                _ => drop(chart.draw_series(points.iter().map(|at| TriangleMarker::new(*at, 5, style.filled())))?),
            }
            for (x, mark) in marks {
                draw_spread(chart, mark, x)?;
                draw_stated(chart, mark, x, style)?;
            }
        }
        Ok(())
    }
}

/// What stands below the horizontal axis.
struct Labels {
    /// Of each place.
    lines: Vec<Vec<String>>,
    /// Most lines of a label.
    line_count: usize,
    rows: usize,
}

impl Labels {
    /// The labels and what they are.
    fn height(&self) -> u32 {
        ((self.rows * self.line_count + 1) as i32 * LINE_HEIGHT + 10) as u32
    }
}

/// From the smallest to the greatest value over the seeds.
fn draw_spread(chart: &mut Chart<'_, '_>, mark: &Mark, x: f64) -> Outcome<()> {
    if mark.least < mark.most {
        chart.draw_series([PathElement::new([(x, mark.least), (x, mark.most)], INK.stroke_width(2))])?;
    }
    Ok(())
}

/// What others state, as hollow marks.
fn draw_stated(chart: &mut Chart<'_, '_>, mark: &Mark, x: f64, colour: RGBColor) -> Outcome<()> {
    chart.draw_series(mark.published.map(|stated| Circle::new((x, stated), 5, colour.stroke_width(2))))?;
    chart.draw_series(mark.model.map(|stated| Cross::new((x, stated), 4, colour.stroke_width(2))))?;
    Ok(())
}

fn colour(style: usize) -> RGBColor {
    SERIES[style % SERIES.len()]
}

/// Paler, so that marks on a bar are seen on any ground.
fn bar_colour(style: usize) -> RGBAColor {
    colour(style).mix(0.7)
}

/// A style for each series: its own for those that have one, those left for the others, in order.
fn styles(series: &[&str]) -> Vec<usize> {
    let own = |name: &str| NAMED.iter().position(|named| *named == name);
    let mut left = (0..).filter(|style| !series.iter().any(|name| own(name) == Some(*style)));
    series.iter().map(|name| own(name).or_else(|| left.next()).unwrap_or_default()).collect()
}

fn font() -> TextStyle<'static> {
    ("sans-serif", 15).into_font().color(&INK)
}

fn index_of<'n>(name: &'n str, names: &mut Vec<&'n str>) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// The number in front of a word, or behind its `=`: 16 of `16KiB`, 16000 of `16k`, 4 of `k=4`.
fn number_of(word: &str) -> Option<f64> {
    let word = word.rsplit('=').next().unwrap_or(word);
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(word.len());
    let number: f64 = word[..end].parse().ok()?;
    // The whole of a word, as `10M` or `10M-loaded`, but not the beginning of one, as in `16MiB`.
    let letters: String = word[end..].chars().take_while(char::is_ascii_alphanumeric).collect();
    Some(match letters.as_str() {
        "k" => number * 1e3,
        "M" => number * 1e6,
        _ => number,
    })
}

fn width_of(lines: &[String]) -> f64 {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) as f64 * LETTER
}

/// A label in lines of at most so many letters where it has a place to be broken, and in at most two lines.
fn wrapped(label: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in label.split_inclusive(['/', ' ', '-', '_']) {
        let is_last = lines.len() == LABEL_LINES;
        match lines.last_mut() {
            Some(line) if is_last || line.chars().count() + word.chars().count() <= letters => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;
    use crate::{Figure, Scale};

    fn plot(kind: PlotKind) -> Plot {
        Plot { title: "A < B", metric: "reads_per_op", cases: "{x}/{series}", x: "cache (KiB)", y: "reads", kind }
    }

    fn drawn(kind: PlotKind) -> String {
        let figure = |case, value| Figure::new("x", case, "reads_per_op", value, "reads");
        let figures = vec![
            figure("4KiB/mu", 2.0).with_published(Some(1.97)),
            figure("16KiB/mu", 1.5).with_model(Some(1.52)),
            figure("4KiB/bplus", 3.0).with_published(Some(3.1)),
            figure("other", 9.0).with_published(Some(9.0)),
        ];
        let cells = Results { figures, scale: Scale::Full }.cells();
        svg(&plot(kind), &cells.iter().collect::<Vec<_>>()).unwrap()
    }

    /// What is written in a picture, in the order in which it is drawn.
    fn texts(svg: &str) -> Vec<&str> {
        let texts = svg.split("<text ").skip(1).map(|text| text.split_once('>').unwrap().1);
        texts.map(|text| text.split_once('<').unwrap().0.trim()).collect()
    }

    #[test]
    fn a_picture_names_its_axes_places_and_series() {
        for kind in [PlotKind::Bars, PlotKind::Lines, PlotKind::LogLines] {
            let svg = drawn(kind);
            let texts = texts(&svg);
            for text in ["mu", "bplus", "published", "model", "cache (KiB)", "reads", "4KiB", "16KiB"] {
                assert_eq!(texts.iter().filter(|known| **known == text).count(), 1, "{kind:?}: {text} in {texts:?}");
            }
            assert!(svg.contains("<title>A &lt; B: reads by cache (KiB)</title>") && !svg.contains(INK_TEXT));
        }
    }

    #[test]
    fn what_is_published_is_a_hollow_mark_beside_ours() {
        for kind in [PlotKind::Bars, PlotKind::Lines] {
            let svg = drawn(kind);
            let hollow = svg.lines().filter(|line| line.starts_with("<circle") && line.contains("fill=\"none\""));
            // One in the legend and one for each published number of a case that is drawn.
            assert_eq!(hollow.count(), 3, "{kind:?}");
        }
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        assert!(!svg(&plot(PlotKind::Bars), &[]).unwrap().contains("<text"));
    }

    #[test]
    fn a_structure_has_the_same_colour_in_every_picture() {
        assert_eq!(styles(&["bplus", "mu", "nandu"]), [2, 1, 0]);
        assert_eq!(styles(&["other", "mu", "third"]), [0, 1, 2]);
        assert_eq!(styles(&[""]), [0]);
    }

    #[test]
    fn places_are_the_numbers_that_stand_in_front() {
        let numbers = ["16KiB", "8+8", "k=4", "1.5M", "16k", "10M-loaded", "2MiB"].map(number_of);
        assert_eq!(numbers, [16.0, 8.0, 4.0, 1.5e6, 16e3, 10e6, 2.0].map(Some));
        assert_eq!(number_of("slc-mode"), None);
    }

    #[test]
    fn long_labels_are_broken_where_they_may_be() {
        assert_eq!(wrapped("w25n01gv/10", 20), ["w25n01gv/10"]);
        assert_eq!(wrapped("w25n01gv/1000000", 10), ["w25n01gv/", "1000000"]);
        assert_eq!(wrapped("a-long/path of words", 6), ["a-", "long/path of words"]);
    }
}
