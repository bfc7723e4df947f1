//! Charts as SVG: lines over numbers, and bars.
//!
//! The plotters library draws the charts. This module adds a legend above the chart, dashes, and the title and description
//! for screen readers. The set of colours is fixed, so a page can replace them in its dark mode.

use std::fmt::Write;

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::escape::escaped;

/// Width and height of a displayed chart in pixels.
const SIZE: (u32, u32) = (720, 400);

/// Scale of a drawing relative to the displayed chart. It refines the drawing, because the library draws on whole pixels.
const FINE: u32 = 5;

/// Height of the text, height of a line of the legend, and sizes of the areas for axis labels. All are in pixels of the
/// displayed chart.
const TEXT: u32 = 15;
const LEGEND_LINE: i32 = 20;
const LABELS: (u32, u32) = (40, 74);

/// Largest number of points of a thick line. A line with more points is thinner, because it rises and falls often.
const MANY_POINTS: usize = 200;

/// Estimated width of a letter, as a share of the height of a line. The exact width is unknown, because the displaying
/// program chooses the font.
const LETTER: f64 = 0.50;

/// Colours of lines that colour-blind readers can distinguish, and dashes for readers without colour vision.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B8860B", "#56B4E9", "#8B5CF6", "#7A7A7A"];
const DASHES: [&str; 4] = ["", "9 4", "2 3", "9 3 2 3"];

/// Colours of text and of the lines of the grid.
pub(crate) const INK: &str = "#222222";
pub(crate) const GRID: &str = "#DDDDDD";

/// A line with its name.
#[derive(Clone, Debug)]
pub(crate) struct ChartLine {
    pub name: String,
    /// Points in ascending order of their horizontal coordinate. A vertical coordinate that is not finite marks a gap.
    pub points: Vec<(f64, f64)>,
}

/// Formats a number of an axis.
pub(crate) type AxisText = fn(f64) -> String;

/// An axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub label: String,
    pub text: AxisText,
}

/// Content of a chart.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Lines. A logarithmic vertical axis omits numbers that are not positive.
    Lines { x: Axis, lines: Vec<ChartLine>, is_logarithmic: bool },
    /// A bar for each name.
    Bars { x: String, bars: Vec<(String, f64)> },
}

/// A chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub content: Content,
    pub y: Axis,
}

/// Error of the drawing library. Drawing into memory does not fail.
type DrawingError = DrawingAreaErrorKind<std::io::Error>;

impl Chart {
    /// Draws the chart without the enclosing element.
    pub fn draw(&self) -> String {
        let mut drawn = String::new();
        self.draw_into(&mut drawn).expect("drawing finite numbers into memory does not fail");
        let inner = drawn.split_once('\n').map_or("", |(_, inner)| inner);
        dashed(inner.trim_end().trim_end_matches("</svg>"))
    }

    /// Draws the chart as an element with a title and a description. The `id` must be unique in the document.
    pub fn element(&self, id: &str, title: &str, description: &str, is_file: bool) -> String {
        let (width, height) = SIZE;
        let (wide, high) = (width * FINE, height * FINE);
        let mut element = String::new();
        // In a page, the page's style sets the size.
        let file = format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"");
        let file = if is_file { file } else { String::new() };
        let (title, description) = (escaped(title), escaped(description));
        let _ = write!(
            element,
            "<svg{file} viewBox=\"0 0 {wide} {high}\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-desc\">{description}</desc>\n"
        );
        if is_file {
            let _ = writeln!(element, "<rect width=\"{wide}\" height=\"{high}\" fill=\"#FFFFFF\"/>");
        }
        element + &self.draw() + "</svg>\n"
    }

    fn draw_into(&self, drawn: &mut String) -> Result<(), DrawingError> {
        let root = SVGBackend::with_string(drawn, (SIZE.0 * FINE, SIZE.1 * FINE)).into_drawing_area();
        match &self.content {
            Content::Lines { x, lines, is_logarithmic } => {
                let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
                let below = if names.len() > 1 { draw_legend(&root, &names)? } else { 0 };
                let area = root.margin(below, 0, 0, 0);
                let mut builder = ChartBuilder::on(&area);
                set_up(&mut builder);
                let range = range_of(lines.iter().flat_map(|line| &line.points).map(|point| point.0));
                let heights = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
                if *is_logarithmic {
                    let (least, most) = range_of(heights.filter(|&height| height > 0.0));
                    let least = least.max(most * LEAST_OF_MOST);
                    let chart = builder
                        .build_cartesian_2d(range.0..range.1, (least * 0.8..most * 1.3).log_scale())?;
                    self.draw_lines(chart, x, lines, |height| height >= least)?;
                } else {
                    let (_, most) = range_of(heights.chain([0.0]));
                    let chart = builder.build_cartesian_2d(range.0..range.1, 0.0..most * 1.05)?;
                    self.draw_lines(chart, x, lines, f64::is_finite)?;
                }
            }
            Content::Bars { x, bars } => self.draw_bars(&root, x, bars)?,
        }
        root.present()
    }

    fn draw_lines<Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
        x: &Axis,
        lines: &[ChartLine],
        is_drawn: impl Fn(f64) -> bool,
    ) -> Result<(), DrawingError> {
        let (text_of_x, text_of_y) = (|at: &f64| (x.text)(*at), |at: &f64| (self.y.text)(*at));
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(9).y_labels(8).x_label_formatter(&text_of_x).y_label_formatter(&text_of_y);
        mesh.x_desc(&x.label).y_desc(&self.y.label);
        mesh.bold_line_style(colour(GRID).stroke_width(FINE)).light_line_style(TRANSPARENT);
        mesh.axis_style(colour(INK).stroke_width(FINE))
            .label_style(text_style())
            .axis_desc_style(text_style());
        mesh.draw()?;
        let range = chart.x_range();
        for (nth, line) in lines.iter().enumerate() {
            let width = if line.points.len() > MANY_POINTS { FINE * 3 / 2 } else { 2 * FINE };
            let style = colour(COLOURS[nth % COLOURS.len()]).stroke_width(width);
            for piece in line.points.split(|&(_, height)| !is_drawn(height)) {
                let thinned = thinned(piece, (range.start, range.end));
                match thinned[..] {
                    [] => {}
                    [alone] => {
                        let dot = Circle::new(alone, 2 * FINE, style.filled());
                        chart.draw_series([dot])?;
                    }
                    _ => drop(chart.draw_series(LineSeries::new(thinned, style))?),
                }
            }
        }
        Ok(())
    }

    fn draw_bars(
        &self,
        root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
        x: &str,
        bars: &[(String, f64)],
    ) -> Result<(), DrawingError> {
        let (_, most) = range_of(bars.iter().map(|(_, height)| *height).chain([0.0]));
        let mut builder = ChartBuilder::on(root);
        set_up(&mut builder);
        let count = bars.len().max(1);
        let mut chart = builder.build_cartesian_2d((0..count - 1).into_segmented(), 0.0..most * 1.05)?;
        let name = |at: &SegmentValue<usize>| match at {
            SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => {
                bars.get(*at).map_or(String::new(), |(name, _)| name.clone())
            }
            SegmentValue::Last => String::new(),
        };
        let text_of_y = |at: &f64| (self.y.text)(*at);
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(count + 1).y_labels(8).disable_x_mesh();
        mesh.x_label_formatter(&name).y_label_formatter(&text_of_y);
        mesh.x_desc(x).y_desc(&self.y.label);
        mesh.bold_line_style(colour(GRID).stroke_width(FINE)).light_line_style(TRANSPARENT);
        mesh.axis_style(colour(INK).stroke_width(FINE))
            .label_style(text_style())
            .axis_desc_style(text_style());
        mesh.draw()?;
        let gap = (SIZE.0 * FINE / (6 * count as u32)) as i32;
        // The library places the end of the last segment correctly only if this end is `Last`.
        let end = |at: usize| if at + 1 == count { SegmentValue::Last } else { SegmentValue::Exact(at + 1) };
        let rectangles = bars.iter().enumerate().map(|(at, (_, height))| {
            let ends = [(SegmentValue::Exact(at), 0.0), (end(at), *height)];
            let mut bar = Rectangle::new(ends, colour(COLOURS[0]).filled());
            bar.set_margin(0, 0, gap as u32, gap as u32);
            bar
        });
        chart.draw_series(rectangles)?;
        Ok(())
    }
}

/// Reserves space for labels.
fn set_up(builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>) {
    builder.x_label_area_size(LABELS.0 * FINE).y_label_area_size(LABELS.1 * FINE);
    builder.margin_right(16 * FINE).margin_top(8 * FINE).margin_bottom(2 * FINE);
}

/// Draws a legend above the chart, with the name and a sample of each line. Returns the legend's height.
fn draw_legend(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    names: &[&str],
) -> Result<i32, DrawingError> {
    let fine = FINE as i32;
    let (first, swatch, gap) = (LABELS.1 as i32 * fine, 26 * fine, 8 * fine);
    let (mut x, mut y) = (first, LEGEND_LINE * fine * 2 / 3);
    for (nth, name) in names.iter().enumerate() {
        let width = (name.chars().count() as f64 * LETTER * f64::from(TEXT * FINE)) as i32;
        if x > first && x + swatch + gap + width > SIZE.0 as i32 * fine {
            (x, y) = (first, y + LEGEND_LINE * fine);
        }
        let style = colour(COLOURS[nth % COLOURS.len()]).stroke_width(2 * FINE);
        root.draw(&PathElement::new(vec![(x, y), (x + swatch, y)], style))?;
        let anchor = plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Left,
            plotters::style::text_anchor::VPos::Center,
        );
        root.draw(&Text::new(*name, (x + swatch + gap, y), text_style().pos(anchor)))?;
        x += swatch + gap + width + 2 * gap;
    }
    Ok(y + LEGEND_LINE * fine / 2)
}

fn text_style() -> TextStyle<'static> {
    ("sans-serif", TEXT * FINE).into_font().color(&colour(INK))
}

/// Parses a colour written as `#RRGGBB`.
fn colour(text: &str) -> RGBColor {
    let part =
        |at: usize| text.get(at..at + 2).and_then(|part| u8::from_str_radix(part, 16).ok()).unwrap_or(0);
    RGBColor(part(1), part(3), part(5))
}

/// Smallest number on a logarithmic axis, as a share of the largest.
///
/// Without this limit, the ratio of the axis ends could be infinite. The library would then search for ticks forever.
const LEAST_OF_MOST: f64 = 1e-300;

/// Smallest and largest of some numbers. The two results always differ.
fn range_of(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = numbers.filter(|number| number.is_finite());
    let (least, most) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), number| (a.min(number), b.max(number)));
    match (least, most) {
        _ if least > most => (0.1, 1.0),
        _ if least == most => (least, least + least.abs().max(1e-3)),
        range => range,
    }
}

/// Thins the points of a line without changing its look.
///
/// In each narrow vertical stripe, only the first, the lowest, the highest and the last point remain. The stripes bound
/// the size of a drawing.
fn thinned(points: &[(f64, f64)], (first, last): (f64, f64)) -> Vec<(f64, f64)> {
    const STRIPES: f64 = SIZE.0 as f64 * 2.0;
    let stripe = |x: f64| ((x - first) / (last - first) * STRIPES) as i64;
    let mut kept = Vec::new();
    for group in points.chunk_by(|a, b| stripe(a.0) == stripe(b.0)) {
        let at = |of: fn(&f64, &f64) -> std::cmp::Ordering| {
            let numbers = group.iter().enumerate();
            numbers.max_by(|(_, a), (_, b)| of(&a.1, &b.1)).map_or(0, |(at, _)| at)
        };
        let mut places = [0, at(|a, b| b.total_cmp(a)), at(f64::total_cmp), group.len() - 1];
        places.sort_unstable();
        let mut before = None;
        for place in places {
            if before != Some(place) {
                kept.push(group[place]);
            }
            before = Some(place);
        }
    }
    kept
}

/// Adds dashes to the lines of a chart, according to their colours.
fn dashed(drawn: &str) -> String {
    let mut out = String::with_capacity(drawn.len() + drawn.len() / 16);
    for line in drawn.lines() {
        let nth = COLOURS.iter().position(|colour| {
            line.starts_with("<polyline") && line.contains(&format!("stroke=\"{colour}\""))
        });
        let dashes = nth.map_or("", |nth| DASHES[nth % DASHES.len()]);
        match line.strip_prefix("<polyline ") {
            Some(rest) if !dashes.is_empty() => {
                let fine = dashes.split(' ').filter_map(|dash| dash.parse::<u32>().ok());
                let fine: Vec<String> = fine.map(|dash| (dash * FINE).to_string()).collect();
                let _ = write!(out, "<polyline stroke-dasharray=\"{}\" {rest}", fine.join(" "));
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_lines_keep_their_peaks() {
        let points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), f64::from(at % 997))).collect();
        let kept = thinned(&points, (0.0, 99_999.0));
        assert!(kept.len() <= 4 * (2 * SIZE.0 as usize + 1) && kept.len() > 1_000, "{}", kept.len());
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert_eq!(kept.iter().filter(|point| point.1 == 996.0).count(), 100, "no peak is lost");
        assert_eq!(thinned(&points[..3], (0.0, 9e9)), [points[0], points[2]]);
    }

    #[test]
    fn any_numbers_can_be_drawn() {
        let text: AxisText = |number| number.to_string();
        for points in [
            vec![],
            vec![(4.0, 0.0)],
            vec![(4.0, 1.0), (6.0, f64::NAN), (8.0, 1.0)],
            vec![(1.0, 1e300), (2.0, 1e-300)],
        ] {
            for is_logarithmic in [false, true] {
                let lines = vec![ChartLine { name: "a <b>".to_owned(), points: points.clone() }; 2];
                let axis = || Axis { label: "x & y".to_owned(), text };
                let content = Content::Lines { x: axis(), lines, is_logarithmic };
                let drawn = Chart { content, y: axis() }.draw();
                assert!(drawn.contains("a &lt;b&gt;") && !drawn.contains("NaN"), "{drawn}");
            }
        }
    }

    /// All bars have the same positive width. A bar has a height unless its number is 0.
    #[test]
    fn any_number_of_bars_can_be_seen() {
        let text: AxisText = |number| number.to_string();
        let sizes = |bars: Vec<(String, f64)>| -> Vec<(i64, i64)> {
            let content = Content::Bars { x: "x".to_owned(), bars };
            let drawn = Chart { content, y: Axis { label: "y".to_owned(), text } }.draw();
            let bars = drawn.lines().filter(|line| line.starts_with("<rect ") && line.contains(COLOURS[0]));
            let number = |line: &str, name: &str| {
                line.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
            };
            bars.map(|line| (number(line, "width"), number(line, "height"))).collect()
        };
        assert_eq!(sizes(vec![]), []);
        for count in 1..=16 {
            let bars = sizes(vec![("a".to_owned(), 1.0); count]);
            assert_eq!(bars.len(), count);
            let widest = i64::from(SIZE.0 * FINE) / count as i64;
            for (width, height) in bars {
                assert!(
                    (widest / 3..widest).contains(&width) && height > 1000,
                    "{count}: {width} × {height}"
                );
            }
        }
        assert!(
            sizes(vec![("a".to_owned(), 0.0); 16]).iter().all(|&(width, height)| width > 0 && height == 0)
        );
    }
}
