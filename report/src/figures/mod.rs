//! The figures of a report: what is drawn, what it shows in words, and its numbers.

mod comparison;
mod play;
mod states;

use crate::chart::{Axis, AxisText, Chart, ChartLine, Content};
use crate::gathered::RunReport;
use crate::table::Numbers;

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is called among the figures of a report: letters, digits and hyphens.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it shows, and how that was found.
    pub caption: String,
    /// The number of the run that it is of; `None` for a comparison.
    pub run: Option<usize>,
    /// What can be seen in it, for those who do not see it.
    pub description: String,
    chart: Chart,
    pub(crate) numbers: Vec<Numbers>,
}

impl Figure {
    /// The drawing as a file of its own.
    #[must_use]
    pub fn svg_file(&self) -> String {
        self.chart.element(&self.name, &self.title, &self.description, true)
    }

    /// The drawing as an element of a page.
    pub(crate) fn svg_element(&self) -> String {
        self.chart.element(&self.name, &self.title, &self.description, false)
    }
}

/// The figures of some runs, run by run, and then those that compare them, where they are several.
#[must_use]
pub fn figures(runs: &[RunReport]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let of_run = states::figures(run).into_iter().chain(play::figures(run));
        figures.extend(of_run.map(|figure| {
            let name = if runs.len() > 1 { format!("run{}-{}", nth + 1, figure.name) } else { figure.name };
            Figure { name, run: Some(nth), ..figure }
        }));
    }
    if runs.len() > 1 {
        figures.extend(comparison::figures(runs));
    }
    figures
}

/// What a figure of lines is made from.
struct Plan {
    name: &'static str,
    title: String,
    caption: String,
    x: (&'static str, AxisText),
    y: (String, AxisText),
    lines: Vec<ChartLine>,
    is_logarithmic: bool,
    numbers: Vec<Numbers>,
}

impl Plan {
    /// The figure; none where nothing would be drawn.
    fn figure(self) -> Option<Figure> {
        let Self { name, title, caption, x, y, lines, is_logarithmic, numbers } = self;
        let lines: Vec<ChartLine> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        if lines.is_empty() {
            return None;
        }
        let said: Vec<String> = lines.iter().map(|line| said_of(line, x, y.1)).collect();
        let description = format!("Lines of {} over {}. {}", y.0, x.0, said.join(" "));
        let x = Axis { label: x.0.to_owned(), text: x.1 };
        let content = Content::Lines { x, lines, is_logarithmic };
        let chart = Chart { content, y: Axis { label: y.0, text: y.1 } };
        Some(Figure { name: name.to_owned(), title, caption, run: None, description, chart, numbers })
    }
}

/// A figure of bars; none where there are none.
fn of_bars(
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

/// What a line shows, in words.
fn said_of(line: &ChartLine, x: (&str, AxisText), y_text: AxisText) -> String {
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
