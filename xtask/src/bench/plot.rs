//! Plot of throughput and latency.

use super::findings::{Curve, Point};

/// Requests, each with a column.
pub(crate) const PANELS: [&str; 2] = ["greet", "tools/list"];

/// Figure of a point to draw.
type Figure = fn(&Point) -> f64;

/// Figures, each with a row.
const ROWS: [(&str, Figure); 2] = [
    ("a second", |point| point.rate),
    ("99 of 100 within so many ms", |point| point.most / 1e3),
];

/// Colours of servers, from a palette that is safe for colour-blind readers (Okabe and Ito).
const COLOURS: [(&str, &str); 6] = [
    ("mcpd", "#0072b2"),
    ("rmcp", "#d55e00"),
    ("bare", "#000000"),
    ("hyper", "#009e73"),
    ("Python", "#e69f00"),
    ("TypeScript", "#cc79a7"),
];

/// Size of a panel and its margins, in pixels.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 50.0;
const LEGEND: f64 = 190.0;

/// Draws an SVG with a column for each panel, and a row for throughput and one for latency.
pub(crate) fn draw(curves: &[Curve]) -> String {
    let width = PANELS.len() as f64 * (LEFT + WIDTH) + LEGEND;
    let height = ROWS.len() as f64 * (TOP + HEIGHT) + TOP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (column, panel) in PANELS.iter().enumerate() {
        let curves: Vec<&Curve> = curves
            .iter()
            .filter(|curve| curve.panel == *panel)
            .collect();
        for (row, (unit, figure)) in ROWS.iter().enumerate() {
            let panel = Panel {
                title: format!("{panel}, {unit}"),
                left: LEFT + column as f64 * (LEFT + WIDTH),
                bottom: (row + 1) as f64 * (TOP + HEIGHT),
                decades: decades(&curves, *figure),
                figure: *figure,
            };
            panel.draw(&curves, &mut svg);
        }
    }
    legend(curves, width - LEGEND + 20.0, &mut svg);
    svg + "</svg>\n"
}

/// Diagram with logarithmic axes.
#[derive(Debug)]
struct Panel {
    title: String,
    left: f64,
    bottom: f64,
    /// Exponents of ten at the bottom and the top.
    decades: (i32, i32),
    figure: Figure,
}

impl Panel {
    fn draw(&self, curves: &[&Curve], svg: &mut String) {
        let (left, right) = (self.left, self.left + WIDTH);
        text(
            svg,
            (left, self.bottom - HEIGHT - 12.0),
            "start",
            &self.title,
        );
        for decade in self.decades.0..=self.decades.1 {
            let power = 10_f64.powi(decade);
            let y = self.y(power);
            path(svg, &format!("M{left} {y}H{right}"), "#cccccc", "");
            text(svg, (left - 6.0, y + 4.0), "end", &power.to_string());
        }
        // All curves have points at the same concurrencies.
        for point in curves.iter().take(1).flat_map(|curve| &curve.points) {
            let label = format!("{} at a time", point.at_once);
            text(svg, (self.x(point), self.bottom + 16.0), "middle", &label);
        }
        for curve in curves {
            let places = curve.points.iter().map(|point| {
                let (x, y) = (self.x(point), self.y((self.figure)(point)));
                format!("{x:.1} {y:.1}")
            });
            let line = format!("M{}", places.collect::<Vec<_>>().join("L"));
            let (colour, style) = style(&curve.server);
            path(svg, &line, colour, style);
        }
    }

    /// Returns the horizontal position, from 1 to 64 at a time.
    fn x(&self, point: &Point) -> f64 {
        self.left + 30.0 + (point.at_once as f64).log(64.0) * (WIDTH - 60.0)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.decades.0), f64::from(self.decades.1));
        self.bottom - (value.log10() - low) / (high - low) * HEIGHT
    }
}

/// Returns the exponents of ten that enclose all points.
fn decades(curves: &[&Curve], figure: Figure) -> (i32, i32) {
    let points = curves.iter().flat_map(|curve| &curve.points);
    let logarithms: Vec<f64> = points.map(|point| figure(point).log10()).collect();
    let low = logarithms
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min)
        .floor();
    let high = logarithms
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max)
        .ceil();
    (low as i32, (high as i32).max(low as i32 + 1))
}

/// Returns the style of a server's curves: dashed over stdio, pale when confined.
fn style(server: &str) -> (&'static str, &'static str) {
    let colour = COLOURS.iter().find(|(name, _)| server.starts_with(name));
    let style = match (server.contains("stdio"), server.contains("guarded")) {
        (false, false) => "",
        (true, false) => "stroke-dasharray=\"6 3\"",
        (false, true) => "stroke-opacity=\"0.4\"",
        (true, true) => "stroke-dasharray=\"6 3\" stroke-opacity=\"0.4\"",
    };
    (colour.map_or("#888888", |(_, colour)| colour), style)
}

fn legend(curves: &[Curve], x: f64, svg: &mut String) {
    let mut servers: Vec<&str> = curves.iter().map(|curve| curve.server.as_str()).collect();
    servers.sort_unstable();
    servers.dedup();
    for (place, server) in servers.into_iter().enumerate() {
        let y = TOP + 20.0 * place as f64;
        let (colour, style) = style(server);
        path(svg, &format!("M{x} {y}h30"), colour, style);
        text(svg, (x + 38.0, y + 4.0), "start", server);
    }
}

fn path(svg: &mut String, line: &str, colour: &str, style: &str) {
    *svg += &format!(
        "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" {style}/>\n"
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    *svg += &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
}
