//! Plots: throughput and latency of servers, and growth.

use super::diagram::{Diagram, HEIGHT, LEFT, Line, TOP, WIDTH, begin, path, text};
use super::findings::{Curve, Growth, Point};

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
const COLOURS: [(&str, &str); 7] = [
    ("mcpd", "#0072b2"),
    ("rmcp", "#d55e00"),
    ("bare", "#000000"),
    ("floor", "#56b4e9"),
    ("hyper", "#009e73"),
    ("Python", "#e69f00"),
    ("TypeScript", "#cc79a7"),
];

/// Columns of the picture of growth.
const COLUMNS: usize = 3;

/// Width of the legend, in pixels.
const LEGEND: f64 = 190.0;

/// Draws an SVG with a column for each panel, and a row for throughput and one for latency.
pub(crate) fn draw(curves: &[Curve]) -> String {
    let width = PANELS.len() as f64 * (LEFT + WIDTH) + LEGEND;
    let height = ROWS.len() as f64 * (TOP + HEIGHT) + TOP;
    let mut svg = begin(width, height);
    for (column, panel) in PANELS.iter().enumerate() {
        for (row, (unit, figure)) in ROWS.iter().enumerate() {
            let curves = curves.iter().filter(|curve| curve.panel == *panel);
            let lines = curves.map(|curve| {
                let (colour, style) = style(&curve.server);
                let points = curve.points.iter();
                Line {
                    label: None,
                    colour,
                    style,
                    points: points
                        .map(|point| (point.at_once as f64, figure(point)))
                        .collect(),
                }
            });
            let diagram = Diagram {
                title: format!("{panel}, {unit}"),
                unit: " at a time",
                lines: lines.collect(),
            };
            let left = LEFT + column as f64 * (LEFT + WIDTH);
            diagram.draw(left, (row + 1) as f64 * (TOP + HEIGHT), &mut svg);
        }
    }
    legend(curves, width - LEGEND + 20.0, &mut svg);
    svg + "</svg>\n"
}

/// Draws an SVG with a diagram for each kind of growth.
pub(crate) fn draw_growth(growths: &[Growth]) -> String {
    let mut panels: Vec<&str> = growths.iter().map(|growth| growth.panel).collect();
    panels.dedup();
    let width = COLUMNS as f64 * (LEFT + WIDTH) + LEFT;
    let height = panels.len().div_ceil(COLUMNS) as f64 * (TOP + HEIGHT) + TOP;
    let mut svg = begin(width, height);
    for (place, panel) in panels.into_iter().enumerate() {
        let growths = growths.iter().filter(|growth| growth.panel == panel);
        let lines = growths.zip(COLOURS).map(|(growth, (_, colour))| Line {
            label: Some(growth.name),
            colour,
            style: "",
            points: growth.points.clone(),
        });
        let diagram = Diagram {
            title: panel.to_owned(),
            unit: "",
            lines: lines.collect(),
        };
        let left = LEFT + (place % COLUMNS) as f64 * (LEFT + WIDTH);
        diagram.draw(
            left,
            (place / COLUMNS + 1) as f64 * (TOP + HEIGHT),
            &mut svg,
        );
    }
    svg + "</svg>\n"
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
