//! Diagrams of lines with logarithmic axes, in SVG.

/// Size of a diagram and its margins, in pixels.
pub(crate) const WIDTH: f64 = 300.0;
pub(crate) const HEIGHT: f64 = 200.0;
pub(crate) const LEFT: f64 = 70.0;
pub(crate) const TOP: f64 = 50.0;

/// Space at both ends of the horizontal axis, in pixels.
const MARGIN: f64 = 30.0;

/// Line of one subject.
#[derive(Debug)]
pub(crate) struct Line {
    /// Text above its last point, if the diagram has no legend.
    pub(crate) label: Option<&'static str>,
    pub(crate) colour: &'static str,
    /// Further attributes of the path.
    pub(crate) style: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Diagram with logarithmic axes.
#[derive(Debug)]
pub(crate) struct Diagram {
    pub(crate) title: String,
    /// Unit of the horizontal axis.
    pub(crate) unit: &'static str,
    pub(crate) lines: Vec<Line>,
}

impl Diagram {
    /// Draws it with its lower left corner at this place.
    pub(crate) fn draw(&self, left: f64, bottom: f64, svg: &mut String) {
        let right = left + WIDTH;
        let top = bottom - HEIGHT;
        text(svg, (left, top - 12.0), "start", &self.title);
        let (low, high) = self.decades();
        let y =
            |value: f64| bottom - (value.log10() - f64::from(low)) / f64::from(high - low) * HEIGHT;
        for decade in low..=high {
            let power = 10_f64.powi(decade);
            let y = y(power);
            path(svg, &format!("M{left} {y}H{right}"), "#cccccc", "");
            text(svg, (left - 6.0, y + 4.0), "end", &power.to_string());
        }
        let (least, most) = self.range(|(x, _)| x);
        let x = |value: f64| {
            let share = (value / least).log(most / least);
            left + MARGIN + share * (WIDTH - 2.0 * MARGIN)
        };
        // All lines have points at the same places.
        for (place, _) in self.lines.iter().take(1).flat_map(|line| &line.points) {
            let label = format!("{place}{}", self.unit);
            text(svg, (x(*place), bottom + 16.0), "middle", &label);
        }
        for line in &self.lines {
            let places = line.points.iter().map(|point| (x(point.0), y(point.1)));
            let places: Vec<_> = places.collect();
            let texts = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}"));
            let texts = texts.collect::<Vec<_>>().join("L");
            path(svg, &format!("M{texts}"), line.colour, line.style);
            if let (Some(label), Some((x, y))) = (line.label, places.last()) {
                text(svg, (*x, y - 6.0), "end", label);
            }
        }
    }

    /// Returns the exponents of ten that enclose all values.
    fn decades(&self) -> (i32, i32) {
        let (low, high) = self.range(|(_, y)| y);
        let low = low.log10().floor() as i32;
        (low, (high.log10().ceil() as i32).max(low + 1))
    }

    /// Returns the least and the greatest of these coordinates.
    fn range(&self, coordinate: impl Fn((f64, f64)) -> f64) -> (f64, f64) {
        let points = self.lines.iter().flat_map(|line| &line.points);
        points.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
            let value = coordinate(*point);
            (low.min(value), high.max(value))
        })
    }
}

/// Begins a picture of this size.
pub(crate) fn begin(width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

pub(crate) fn path(svg: &mut String, line: &str, colour: &str, style: &str) {
    *svg += &format!(
        "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" {style}/>\n"
    );
}

pub(crate) fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    *svg += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
}
