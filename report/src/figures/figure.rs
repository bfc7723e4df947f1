//! A figure, made of lines or bars.

use crate::chart::{Axis, AxisText, Chart, ChartLine, Content};
use crate::table::Numbers;

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, unique in a report: letters, digits and hyphens.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Describes the content and the source of the numbers.
    pub caption: String,
    /// The number of its run; `None` for a comparison.
    pub run: Option<usize>,
    /// Description of the drawing for screen readers.
    pub description: String,
    chart: Chart,
    pub(crate) numbers: Vec<Numbers>,
}

impl Figure {
    /// The drawing as a separate file.
    #[must_use]
    pub fn svg_file(&self) -> String {
        self.chart.element(&self.name, &self.title, &self.description, true)
    }

    /// The drawing as an element of a page.
    pub(crate) fn svg_element(&self) -> String {
        self.chart.element(&self.name, &self.title, &self.description, false)
    }
}

/// Parts of a figure of lines.
pub(super) struct Plan {
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) caption: String,
    pub(super) x: (&'static str, AxisText),
    pub(super) y: (String, AxisText),
    pub(super) lines: Vec<ChartLine>,
    pub(super) is_logarithmic: bool,
    pub(super) numbers: Vec<Numbers>,
}

impl Plan {
    /// Makes the figure; `None` if it would be empty.
    pub(super) fn figure(self) -> Option<Figure> {
        let Self { name, title, caption, x, y, lines, is_logarithmic, numbers } = self;
        let lines: Vec<ChartLine> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        if lines.is_empty() {
            return None;
        }
        let described: Vec<String> = lines.iter().map(|line| describe(line, x, y.1)).collect();
        let description = format!("Lines of {} over {}. {}", y.0, x.0, described.join(" "));
        let x = Axis { label: x.0.to_owned(), text: x.1 };
        let content = Content::Lines { x, lines, is_logarithmic };
        let chart = Chart { content, y: Axis { label: y.0, text: y.1 } };
        Some(Figure { name: name.to_owned(), title, caption, run: None, description, chart, numbers })
    }
}

/// Makes a figure of bars; `None` without bars.
pub(super) fn of_bars(
    (name, title): (&str, &str),
    caption: String,
    x: &str,
    y: (&str, AxisText),
    bars: Vec<(String, f64)>,
    numbers: Vec<Numbers>,
) -> Option<Figure> {
    let highest = bars.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let description =
        format!("{} bars of {} by {x}. The highest is {}: {}.", bars.len(), y.0, highest.0, y.1(highest.1));
    let chart = Chart {
        content: Content::Bars { x: x.to_owned(), bars },
        y: Axis { label: y.0.to_owned(), text: y.1 },
    };
    let (name, title) = (name.to_owned(), title.to_owned());
    Some(Figure { name, title, caption, run: None, description, chart, numbers })
}

/// Describes a line in words.
fn describe(line: &ChartLine, x: (&str, AxisText), y_text: AxisText) -> String {
    let seen: Vec<(f64, f64)> = line.points.iter().copied().filter(|point| point.1.is_finite()).collect();
    let highest = seen.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(first), Some(last), Some(highest)) = (seen.first(), seen.last(), highest) else {
        return format!("{}: nothing.", line.name);
    };
    let at = |point: (f64, f64)| format!("{} at {} {}", y_text(point.1), x.0, (x.1)(point.0));
    format!(
        "{}: begins with {}, is largest with {}, ends with {}.",
        line.name,
        at(*first),
        at(highest),
        at(*last)
    )
}
