//! The plots, each as SVG and as PNG.

use std::io;
use std::path::Path;

use immediate_benches::cycles::UNIT;
use immediate_benches::markers;
use immediate_benches::warm::HASH;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figures::Figures;
use crate::storm::{PROTOCOLS, RATES};
use crate::targets::round;
use crate::token;
use crate::update::{OTHERS, SITES, THREADS};

const SIZE: (u32, u32) = (900, 520);
/// Colours that people with any kind of colour vision tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];
const FONT: &str = "sans-serif";

type Failure = Box<dyn std::error::Error>;

/// A bar: its label, its length, and the colour.
struct Bar {
    label: String,
    value: f64,
    colour: usize,
}

/// Points of one kind, by a number that grows by factors.
struct Line {
    label: String,
    points: Vec<(f64, f64)>,
}

enum Kind {
    /// Lying bars, the zero on the left.
    Bars(Vec<Bar>),
    /// Lines over two logarithmic axes, or one.
    Lines { lines: Vec<Line>, x: &'static str, y: &'static str, is_log: bool },
}

struct Plot {
    file: &'static str,
    title: &'static str,
    kind: Kind,
}

/// Draws all plots into a folder; their files without endings, and their titles.
pub(crate) fn draw(
    figures: &Figures,
    folder: &Path,
) -> io::Result<Vec<(&'static str, &'static str)>> {
    let font =
        plotters::style::register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    font.map_err(|_| io::Error::other("the font of the plots cannot be read"))?;
    let plots = plots(figures);
    for plot in &plots {
        let path = |ending: &str| folder.join(format!("{}.{ending}", plot.file));
        let svg = SVGBackend::new(&path("svg"), SIZE).into_drawing_area().draw_plot(plot);
        let png = BitMapBackend::new(&path("png"), SIZE).into_drawing_area().draw_plot(plot);
        svg.and(png).map_err(|failure| io::Error::other(format!("{}: {failure}", plot.file)))?;
    }
    Ok(plots.into_iter().map(|plot| (plot.file, plot.title)).collect())
}

fn plots(figures: &Figures) -> Vec<Plot> {
    let bars = |entries: Vec<(String, String, usize)>| {
        let bar = |(label, path, colour): (String, String, usize)| Bar {
            label,
            value: figures.median(&path),
            colour,
        };
        Kind::Bars(entries.into_iter().map(bar).collect())
    };
    let cold = ["base", "immediate", "immediate_value", "l1", "memory"];
    let mut plots = vec![
        Plot {
            file: "memory_hit",
            title: if UNIT == "ns" {
                "A branch on a value, by where the value is (ns, fenced)"
            } else {
                "A branch on a value, by where the value is (cycles, fenced)"
            },
            kind: bars(
                cold.iter()
                    .enumerate()
                    .map(|(at, name)| {
                        (name.replace('_', " "), format!("read.cold.{name}_cycles"), at)
                    })
                    .collect(),
            ),
        },
        Plot {
            file: "read_warm",
            title: "One round of a loop with a check that is off, warm (ns)",
            kind: bars(
                HASH.iter()
                    .map(|contender| {
                        let colour = match contender.key {
                            "base" | "base_again" => 5,
                            "immediate" | "immediate_value" => 0,
                            _ => 1,
                        };
                        (contender.what.into(), format!("read.warm.{}_ns", contender.key), colour)
                    })
                    .collect(),
            ),
        },
        Plot {
            file: "token",
            title: "A turn of a token between two processes, and clock calls (ns)",
            kind: bars(
                token::CONTENDERS
                    .iter()
                    .map(|name| {
                        let label = format!("turn, {}", name.replace('_', " "));
                        (label, format!("token.{name}_ns"), 0)
                    })
                    .chain(token::CLOCKS.iter().map(|name| {
                        let label = format!("clock, {}", name.replace('_', " "));
                        (label, format!("clock.{name}_ns"), 2)
                    }))
                    .collect(),
            ),
        },
    ];
    let mut pressed = Vec::new();
    for pressure in markers::PRESSURES {
        for (colour, name) in ["compiled_out", "immediate", "global"].into_iter().enumerate() {
            let path = format!("markers.{name}.{pressure}_cycles");
            pressed.push((format!("{pressure}: {}", name.replace('_', " ")), path, colour));
        }
    }
    plots.push(Plot {
        file: "markers",
        title: if UNIT == "ns" {
            "A system call with two markers, by what happens between two calls (ns)"
        } else {
            "A system call with two markers, by what happens between two calls (cycles)"
        },
        kind: bars(pressed),
    });
    let set = |name: &str, writer: &str, sites: u64, threads: u64| {
        let path = format!("update.{name}.{writer}.sites_{sites}.threads_{threads}_us");
        figures.median(&path)
    };
    let by_sites = |name: &str, threads: u64, label: String| Line {
        label,
        points: SITES.map(|sites| (sites as f64, set(name, "mprotect", sites, threads))).to_vec(),
    };
    let keys = SITES.map(|sites| {
        (sites as f64, figures.median(&format!("update.static_keys.sites_{sites}_us")))
    });
    plots.push(Plot {
        file: "update_sites",
        title: "One set by the number of sites (µs, both axes by factors)",
        kind: Kind::Lines {
            lines: vec![
                Line { label: "static-keys, one thread".into(), points: keys.to_vec() },
                by_sites("single", 0, "single, one thread".into()),
                by_sites("int3", 1, "int3, two threads".into()),
                by_sites("quadword", 1, "quadword, two threads".into()),
                by_sites("stop_world", 1, "stop-world, two threads".into()),
            ],
            x: "sites",
            y: "µs",
            is_log: true,
        },
    });
    let by_threads = |label: String, value: &dyn Fn(u64) -> f64| Line {
        label,
        points: THREADS.map(|threads| (threads as f64 + 1.0, value(threads))).to_vec(),
    };
    let mut lines = Vec::new();
    for (protocol, _) in PROTOCOLS {
        lines.push(by_threads(protocol.replace('_', "-"), &|threads| {
            set(protocol, "mprotect", 1, threads)
        }));
        lines.push(by_threads(format!("floor of {}", protocol.replace('_', "-")), &|threads| {
            figures.median(&format!("update.floor.{protocol}.threads_{threads}_us"))
        }));
    }
    plots.push(Plot {
        file: "update_threads",
        title: "One set of one site by the number of threads (µs, both axes by factors)",
        kind: Kind::Lines { lines, x: "threads, with the one that sets", y: "µs", is_log: true },
    });
    let storm = |name: &str| {
        PROTOCOLS
            .map(|(protocol, _)| Line {
                label: protocol.replace('_', "-"),
                points: RATES
                    .map(|rate| {
                        let path = format!("storm.{protocol}.hz_{rate}.{name}");
                        (rate as f64, figures.median(&path))
                    })
                    .to_vec(),
            })
            .into()
    };
    plots.push(Plot {
        file: "storm_throughput",
        title: "Readers' throughput by sets a second (1 is without sets)",
        kind: Kind::Lines {
            lines: storm("throughput_ratio"),
            x: "sets a second",
            y: "share of the throughput",
            is_log: false,
        },
    });
    plots.push(Plot {
        file: "storm_latency",
        title: "99th percentile of the readers' latency by sets a second (ns)",
        kind: Kind::Lines { lines: storm("p99_ns"), x: "sets a second", y: "ns", is_log: true },
    });
    let growth = |path: &str, label: &str| Line {
        label: label.into(),
        points: OTHERS
            .map(|(others, _)| {
                (others as f64, figures.median(&format!("{path}.others_{others}_us")))
            })
            .to_vec(),
    };
    plots.push(Plot {
        file: "growth",
        title: "One set of one site by the number of other sites (µs)",
        kind: Kind::Lines {
            lines: vec![
                growth("growth", "one more thread runs"),
                growth("growth_alone", "one thread"),
            ],
            x: "other sites",
            y: "µs",
            is_log: false,
        },
    });
    plots
}

trait DrawPlot {
    fn draw_plot(self, plot: &Plot) -> Result<(), Failure>;
}

impl<B: DrawingBackend> DrawPlot for DrawingArea<B, Shift>
where
    B::ErrorType: 'static,
{
    fn draw_plot(self, plot: &Plot) -> Result<(), Failure> {
        self.fill(&WHITE)?;
        let area = self.margin(10, 10, 0, 0).titled(plot.title, (FONT, 22))?;
        match &plot.kind {
            Kind::Bars(bars) => draw_bars(&area, bars)?,
            Kind::Lines { lines, x, y, is_log } => draw_lines(&area, lines, [x, y], *is_log)?,
        }
        self.present()?;
        Ok(())
    }
}

/// Pixels left of the bars, for their labels, and right, for their values.
const MARGINS: (i32, i32) = (230, 110);

fn draw_bars<B: DrawingBackend>(area: &DrawingArea<B, Shift>, bars: &[Bar]) -> Result<(), Failure>
where
    B::ErrorType: 'static,
{
    let (width, height) = area.dim_in_pixel();
    let longest = bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
    let room = f64::from(width as i32 - MARGINS.0 - MARGINS.1);
    let step = f64::from(height) / bars.len() as f64;
    let text =
        |horizontal| (FONT, 17).into_font().color(&BLACK).pos(Pos::new(horizontal, VPos::Center));
    for (place, bar) in bars.iter().enumerate() {
        let top = step * place as f64;
        let middle = (top + step / 2.0) as i32;
        let end = MARGINS.0 + (bar.value / longest * room).max(1.0) as i32;
        let rows = [(top + step * 0.15) as i32, (top + step * 0.85) as i32];
        area.draw(&Rectangle::new(
            [(MARGINS.0, rows[0]), (end, rows[1])],
            COLOURS[bar.colour].filled(),
        ))?;
        let label = bar.label.clone();
        area.draw(&Text::new(label, (MARGINS.0 - 10, middle), text(HPos::Right)))?;
        area.draw(&Text::new(round(bar.value), (end + 8, middle), text(HPos::Left)))?;
    }
    Ok(())
}

fn draw_lines<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    lines: &[Line],
    [x, y]: [&str; 2],
    is_log: bool,
) -> Result<(), Failure>
where
    B::ErrorType: 'static,
{
    let points = || lines.iter().flat_map(|line| &line.points);
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let (left, right) = ends(&mut points().map(|(x, _)| *x));
    let (low, high) = ends(&mut points().map(|(_, y)| *y));
    // A place between the names of the lines and the plot.
    let (area, legend) = area.split_horizontally(SIZE.0 - 220);
    let mut builder = ChartBuilder::on(&area);
    builder.margin(12).x_label_area_size(48).y_label_area_size(86);
    let mut places: Vec<f64> = points().map(|(x, _)| *x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let across = (left / 1.1..right * 1.1).log_scale().with_key_points(places);
    macro_rules! chart {
        ($up:expr) => {{
            let mut chart = builder.build_cartesian_2d(across, $up)?;
            chart
                .configure_mesh()
                .x_desc(x)
                .y_desc(y)
                .x_label_formatter(&|value| grouped(*value))
                .y_label_formatter(&|value| grouped(*value))
                .label_style((FONT, 16))
                .axis_desc_style((FONT, 17))
                .light_line_style(WHITE)
                .bold_line_style(RGBColor(225, 225, 225))
                .draw()?;
            for (place, line) in lines.iter().enumerate() {
                let colour = COLOURS[place % COLOURS.len()];
                let style = colour.stroke_width(2);
                chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
                chart.draw_series(
                    line.points.iter().map(|point| Circle::new(*point, 4, colour.filled())),
                )?;
            }
        }};
    }
    if is_log {
        chart!((low / 1.5..high * 1.5).log_scale());
    } else {
        chart!(0.0..high * 1.1);
    }
    for (place, line) in lines.iter().enumerate() {
        let row = 40 + 28 * place as i32;
        let colour = COLOURS[place % COLOURS.len()];
        legend.draw(&Rectangle::new([(0, row - 7), (14, row + 7)], colour.filled()))?;
        let style = (FONT, 17).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        legend.draw(&Text::new(line.label.clone(), (22, row), style))?;
    }
    Ok(())
}

/// A number on an axis.
fn grouped(value: f64) -> String {
    if value < 10.0 {
        return format!("{}", (value * 100.0).round() / 100.0);
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
