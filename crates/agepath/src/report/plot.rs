//! A run as one figure for papers and READMEs: the path, the learning curve and the critical points over one age axis,
//! from the same data and in the same colours as the page.

use super::page::{Histogram, KINDS, Mark, Report};
use super::short;
use crate::error::{Error, Result};
use crate::path::Kind;
use crate::select::Candidate;
use plotters::chart::SeriesAnno;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::register_font;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Pixels of an SVG; a PNG has [`ZOOM`] times as many each way.
const SIZE: (u32, u32) = (900, 960);
/// So that print is sharp.
const ZOOM: u32 = 2;
/// Lines with a colour and a name of their own; the page highlights as many.
const NAMED: usize = 8;
/// Lines drawn at all.
const MAX_LINES: usize = 150;
/// Characters of a name.
const MAX_NAME: usize = 18;

/// The page's light colours.
const COLORS: [RGBColor; NAMED] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xc0, 0x4a, 0x00),
    RGBColor(0x00, 0x75, 0x5a),
    RGBColor(0xa8, 0x3a, 0x78),
    RGBColor(0x7a, 0x60, 0x00),
    RGBColor(0x4b, 0x3f, 0xc4),
    RGBColor(0xa3, 0x23, 0x1f),
    RGBColor(0x4a, 0x66, 0x75),
];
const REST: RGBColor = RGBColor(0x9a, 0xa3, 0xb0);
const SOFT: RGBColor = RGBColor(0x4d, 0x58, 0x69);

const FONT: &str = "sans-serif";
const FONT_FILE: &[u8] = include_bytes!("../../fonts/Roboto-Regular.ttf");

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotFormat {
    /// Scalable, text stays text.
    Svg,
    /// Pixels.
    Png,
}

impl PlotFormat {
    /// By the end of the file's name.
    pub fn of(path: &Path) -> Result<PlotFormat> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("svg") => Ok(PlotFormat::Svg),
            Some("png") => Ok(PlotFormat::Png),
            _ => Err(Error::Option {
                name: "plot",
                value: path.display().to_string(),
                expected: "a file name that ends in .svg or .png".into(),
            }),
        }
    }
}

/// The figure of a run as the bytes of a file.
pub fn plot(report: &Report, format: PlotFormat) -> Result<Vec<u8>> {
    let figure = Figure::new(report)?;
    let wrong = |message: String| Error::Plot { message };
    // Registering the same font again replaces it by itself.
    register_font(FONT, FontStyle::Normal, FONT_FILE).map_err(|_| wrong("the font cannot be read".into()))?;
    match format {
        PlotFormat::Svg => {
            let mut text = String::new();
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            figure.draw(&area, 1).map_err(wrong)?;
            drop(area);
            Ok(text.into_bytes())
        }
        PlotFormat::Png => {
            let (width, height) = (SIZE.0 * ZOOM, SIZE.1 * ZOOM);
            let mut pixels = vec![255; (3 * width * height) as usize];
            let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
            figure.draw(&area, ZOOM).map_err(wrong)?;
            drop(area);
            encode(&pixels, width, height).map_err(|e| wrong(e.to_string()))
        }
    }
}

fn encode(pixels: &[u8], width: u32, height: u32) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(out)
}

/// A polyline over age.
type Line = Vec<(f64, f64)>;

/// What is drawn.
struct Figure {
    title: String,
    ages: (f64, f64),
    /// What the lines are.
    what: String,
    /// Largest first.
    lines: Vec<(String, Line)>,
    turning: Vec<f64>,
    jumps: Vec<f64>,
    learning: Option<Learning>,
    histogram: Histogram,
    marks: Vec<Mark>,
}

struct Learning {
    metric: String,
    curve: Vec<Candidate>,
    ordinary: Option<f64>,
    test: Option<Line>,
}

impl Figure {
    fn new(report: &Report) -> Result<Figure> {
        let (path, summary, order) = (report.path, report.summary, report.order());
        let stored = report.frames(&order)?;
        let test = report.test_scores(&stored)?;
        let frames = stored.list;
        let test = test.map(|scores| frames.iter().map(|f| f.age).zip(scores).collect());
        let (what, names, _) = report.lines(&order);
        let line = |j: usize| -> Line { frames.iter().map(|f| (f.age, f.trace[j])).collect() };
        let mut lines: Vec<(String, Line)> = names.iter().enumerate().map(|(j, n)| (shorten(n), line(j))).collect();
        lines.sort_by(|a, b| height(&b.1).total_cmp(&height(&a.1)));
        lines.truncate(MAX_LINES);
        let events = |kind: Kind| path.events.iter().filter(|e| e.kind == kind).map(|e| e.age).collect();
        Ok(Figure {
            title: format!("{}: age-path, {}", shorten(&summary.data), summary.model),
            ages: path.ages,
            what: what.to_lowercase(),
            lines,
            turning: events(Kind::Turning),
            jumps: events(Kind::Jump),
            learning: report.choice.map(|c| Learning {
                metric: c.selection.metric.clone(),
                curve: c.selection.curve.clone(),
                ordinary: c.ordinary_score,
                test,
            }),
            histogram: Histogram::log(path),
            marks: report.marks(),
        })
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, zoom: u32) -> std::result::Result<(), String> {
        let wrong = |e: DrawingAreaErrorKind<B::ErrorType>| e.to_string();
        area.fill(&WHITE).map_err(wrong)?;
        let area = area.titled(&self.title, font(17, zoom)).map_err(wrong)?;
        let height = area.dim_in_pixel().1;
        let (paths, rest) = area.split_vertically(height * if self.learning.is_some() { 46 } else { 62 } / 100);
        self.draw_paths(&paths, zoom).map_err(wrong)?;
        let histogram = match &self.learning {
            Some(learning) => {
                let (middle, last) = rest.split_vertically(height * 28 / 100);
                self.draw_learning(learning, &middle, zoom).map_err(wrong)?;
                last
            }
            None => rest,
        };
        self.draw_histogram(&histogram, zoom).map_err(wrong)?;
        area.present().map_err(wrong)
    }

    fn draw_paths<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, zoom: u32) -> Drawn<B> {
        let all = || self.lines.iter().flat_map(|(_, line)| line).map(|p| p.1);
        let (low, high) = padded(all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        // Room below the lines for the marks of critical points.
        let low = low - 0.06 * (high - low);
        let mut chart = builder(area, zoom).build_cartesian_2d(AgeAxis::new(self.ages), low..high)?;
        axes(&mut chart, zoom, &self.what)?;
        self.draw_marks(&mut chart, (low, high), zoom)?;
        for (k, (_, line)) in self.lines.iter().enumerate().rev() {
            let Some(&color) = COLORS.get(k) else {
                chart.draw_series(LineSeries::new(line.iter().copied(), REST.stroke_width(zoom)))?;
                continue;
            };
            let style = color.stroke_width(2 * zoom);
            draw_line(&mut chart, line, k, style, zoom)?;
        }
        self.draw_names(area, &chart, zoom)?;
        self.name_marks(&mut chart, high, zoom)?;
        let unit = 0.018 * (high - low);
        let tick = |&age: &f64| PathElement::new([(age, low), (age, low + unit)], SOFT.stroke_width(zoom));
        chart.draw_series(self.turning.iter().map(tick))?;
        let size = 5 * zoom as i32;
        let jump = |&age: &f64| TriangleMarker::new((age, low + 1.6 * unit), size, COLORS[6].filled());
        let anno = chart.draw_series(self.jumps.iter().map(jump))?;
        if !self.jumps.is_empty() {
            anno.label("jump").legend(move |(x, y)| TriangleMarker::new((x + 10, y), size, COLORS[6].filled()));
        }
        legend(&mut chart, zoom, SeriesLabelPosition::UpperLeft)
    }

    fn draw_learning<B: DrawingBackend>(
        &self,
        learning: &Learning,
        area: &DrawingArea<B, Shift>,
        zoom: u32,
    ) -> Drawn<B> {
        let ends = |c: &Candidate| [c.score - c.standard_error, c.score + c.standard_error];
        let tested = || learning.test.iter().flatten().map(|p| p.1);
        let scores = || learning.curve.iter().flat_map(ends).chain(learning.ordinary).chain(tested());
        let (low, high) = padded(scores().fold(f64::INFINITY, f64::min), scores().fold(f64::NEG_INFINITY, f64::max));
        let mut chart = builder(area, zoom).build_cartesian_2d(AgeAxis::new(self.ages), low..high)?;
        axes(&mut chart, zoom, &learning.metric)?;
        self.draw_marks(&mut chart, (low, high), zoom)?;
        let upper = learning.curve.iter().map(|c| (c.age, ends(c)[1]));
        let lower = learning.curve.iter().rev().map(|c| (c.age, ends(c)[0]));
        let band: Line = upper.chain(lower).collect();
        chart.draw_series([Polygon::new(band, COLORS[0].mix(0.18))])?;
        let style = COLORS[0].stroke_width(2 * zoom);
        let curve = learning.curve.iter().map(|c| (c.age, c.score));
        let line = chart.draw_series(LineSeries::new(curve, style))?;
        line.label(format!("{} ± one standard error", learning.metric)).legend(key(style, zoom));
        if let Some(line) = &learning.test {
            let style = COLORS[2].stroke_width(2 * zoom);
            draw_line(&mut chart, line, 2, style, zoom)?.label("test rows").legend(dashed_key(style, zoom));
        }
        if let Some(score) = learning.ordinary {
            let ends = [(self.ages.0, score), (self.ages.1, score)];
            let style = COLORS[1].stroke_width(2 * zoom);
            draw_line(&mut chart, &ends, 1, style, zoom)?.label("ordinary fit").legend(dashed_key(style, zoom));
        }
        legend(&mut chart, zoom, SeriesLabelPosition::UpperRight)
    }

    fn draw_histogram<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, zoom: u32) -> Drawn<B> {
        let Histogram { edges, counts } = &self.histogram;
        let total = |b: usize| counts.iter().map(|c| c[b]).sum::<usize>();
        let top = (0..edges.len() - 1).map(total).max().unwrap_or(0).max(1) as f64 * 1.05;
        let mut chart = builder(area, zoom).build_cartesian_2d(AgeAxis::new(self.ages), 0.0..top)?;
        axes(&mut chart, zoom, "critical points")?;
        let mut below = vec![0; edges.len() - 1];
        for (kind, color) in [0, 2, 6].into_iter().enumerate() {
            let color = COLORS[color];
            let bars = (0..below.len()).filter(|&b| counts[kind][b] > 0).map(|b| {
                let from = below[b] as f64;
                Rectangle::new(
                    [(edges[b], from), (edges[b + 1], from + counts[kind][b] as f64)],
                    color.mix(0.75).filled(),
                )
            });
            let bars: Vec<_> = bars.collect();
            let swatch = move |(x, y)| Rectangle::new([(x, y - 4), (x + 18, y + 4)], color.mix(0.75).filled());
            chart.draw_series(bars)?.label(KINDS[kind]).legend(swatch);
            below.iter_mut().zip(&counts[kind]).for_each(|(sum, n)| *sum += n);
        }
        legend(&mut chart, zoom, SeriesLabelPosition::UpperRight)
    }

    /// Names beside the ends of the highlighted lines, pushed apart where they would overlap.
    fn draw_names<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, chart: &Chart<'_, B>, zoom: u32) -> Drawn<B> {
        let (left, top) = (area.get_pixel_range().0.start, area.get_pixel_range().1.start);
        let named = self.lines.iter().zip(COLORS).filter_map(|((name, line), color)| {
            let (x, y) = chart.backend_coord(line.last()?);
            Some((y - top, x - left, name, color))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|n| n.0);
        let line = 13 * zoom as i32;
        let bottom = area.dim_in_pixel().1 as i32 - 40 * zoom as i32;
        let mut free = 0;
        for (k, (y, x, name, color)) in named.iter().enumerate() {
            let rest = (named.len() - k) as i32;
            let place = (*y - line / 2).max(free).min(bottom - rest * line);
            let font = (FONT, 12 * zoom).into_font().color(color);
            area.draw(&Text::new(name.as_str(), (x + 6 * zoom as i32, place), font))?;
            free = place + line;
        }
        Ok(())
    }

    /// Vertical lines at the marked ages.
    fn draw_marks<B: DrawingBackend>(&self, chart: &mut Chart<'_, B>, (low, high): (f64, f64), zoom: u32) -> Drawn<B> {
        let line = |m: &Mark| PathElement::new([(m.age, low), (m.age, high)], SOFT.stroke_width(zoom));
        chart.draw_series(self.marks.iter().map(line))?;
        Ok(())
    }

    /// What the marked ages are, beside the upper ends of their lines; lower panels share the axis.
    fn name_marks<B: DrawingBackend>(&self, chart: &mut Chart<'_, B>, high: f64, zoom: u32) -> Drawn<B> {
        let name = |m: &Mark| Text::new(format!(" {}", m.label), (m.age, high), font(12, zoom));
        chart.draw_series(self.marks.iter().map(name))?;
        Ok(())
    }
}

type Drawn<B, T = ()> = std::result::Result<T, DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<AgeAxis, plotters::coord::types::RangedCoordf64>>;

/// Ages, evenly in ln λ, with ticks at 1, 2 and 5 times powers of ten, or only at powers where there are many.
struct AgeAxis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl AgeAxis {
    fn new((low, high): (f64, f64)) -> AgeAxis {
        let (low, high) = if high > low { (low, high) } else { (0.9 * low, 1.1 * high) };
        let steps: &[f64] = if high / low > 3000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let ticks = decades.flat_map(|k| steps.iter().map(move |s| s * 10f64.powi(k)));
        let inside: Vec<f64> = ticks.filter(|t| (low..=high).contains(t)).collect();
        AgeAxis { low, high, ticks: if inside.len() > 1 { inside } else { vec![low, high] } }
    }
}

impl Ranged for AgeAxis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, age: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (age / self.low).ln() / (self.high / self.low).ln();
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for AgeAxis {
    fn format(age: &f64) -> String {
        short(*age)
    }
}

fn font(size: u32, zoom: u32) -> TextStyle<'static> {
    (FONT, size * zoom).into_font().color(&SOFT)
}

fn builder<'a, 'b, B: DrawingBackend>(area: &'a DrawingArea<B, Shift>, zoom: u32) -> ChartBuilder<'a, 'b, B> {
    let mut out = ChartBuilder::on(area);
    out.margin(8 * zoom).margin_right(104 * zoom).x_label_area_size(34 * zoom).y_label_area_size(62 * zoom);
    out
}

fn axes<B: DrawingBackend>(chart: &mut Chart<'_, B>, zoom: u32, name: &str) -> Drawn<B> {
    // What is left of a sum of steps that should be 0.
    let rounding = 1e-9 * (chart.y_range().end - chart.y_range().start);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(0xe6, 0xe9, 0xee).stroke_width(zoom))
        .axis_style(SOFT.stroke_width(zoom))
        .x_desc("age")
        .y_desc(name)
        .x_labels(12)
        .y_labels(6)
        .y_label_formatter(&|v| short(if v.abs() < rounding { 0.0 } else { *v }))
        .label_style(font(12, zoom))
        .axis_desc_style(font(13, zoom))
        .draw()
}

fn legend<'a, B: DrawingBackend + 'a>(chart: &mut Chart<'a, B>, zoom: u32, position: SeriesLabelPosition) -> Drawn<B> {
    chart
        .configure_series_labels()
        .position(position)
        .margin(6 * zoom)
        .legend_area_size(24 * zoom)
        .background_style(WHITE.mix(0.85))
        .border_style(REST)
        .label_font(font(12, zoom))
        .draw()
}

/// Solid, dashed and dotted in turn, so that colour is not all that tells lines apart.
fn draw_line<'c, 'a, B: DrawingBackend>(
    chart: &'c mut Chart<'a, B>,
    line: &[(f64, f64)],
    k: usize,
    style: ShapeStyle,
    zoom: u32,
) -> Drawn<B, &'c mut SeriesAnno<'a, B>> {
    let dashed = |on: u32, off: u32| DashedLineSeries::new(line.iter().copied(), on * zoom, off * zoom, style);
    match k % 3 {
        0 => chart.draw_series(LineSeries::new(line.iter().copied(), style)),
        1 => chart.draw_series(dashed(8, 4)),
        _ => chart.draw_series(dashed(2, 3)),
    }
}

/// A piece of line for the legend.
fn key(style: ShapeStyle, zoom: u32) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> {
    move |(x, y)| PathElement::new([(x, y), (x + 20 * zoom as i32, y)], style)
}

/// The same, dashed.
fn dashed_key(
    style: ShapeStyle,
    zoom: u32,
) -> impl Fn((i32, i32)) -> DashedPathElement<std::vec::IntoIter<(i32, i32)>, u32> {
    move |(x, y)| DashedPathElement::new(vec![(x, y), (x + 20 * zoom as i32, y)], 5 * zoom, 3 * zoom, style)
}

fn height(line: &Line) -> f64 {
    line.iter().fold(0.0, |m, p| f64::max(m, p.1.abs()))
}

/// A range with some room, never empty.
fn padded(low: f64, high: f64) -> (f64, f64) {
    let room = if high > low { 0.05 * (high - low) } else { 1.0 };
    if low.is_finite() && high.is_finite() { (low - room, high + room) } else { (0.0, 1.0) }
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= MAX_NAME {
        name.into()
    } else {
        name.chars().take(MAX_NAME - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::{Run, hostile};
    use super::*;

    #[test]
    fn an_svg_has_the_names_as_text_and_only_as_text() {
        let run = Run::new(hostile());
        let text = String::from_utf8(plot(&run.report(), PlotFormat::Svg).unwrap()).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{}", &text[..200]);
        assert!(text.contains("&lt;/script&gt;") && !text.contains("</script"));
        assert!(text.contains("ordinary fit") && text.contains("chosen"));
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn a_png_has_pixels_of_more_than_one_colour() {
        let run = Run::new(hostile());
        let bytes = plot(&run.report(), PlotFormat::Png).unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (SIZE.0 * ZOOM, SIZE.1 * ZOOM));
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let blue = pixels.chunks(3).filter(|p| *p == [0x00, 0x72, 0xb2]).count();
        assert!(blue > 1000, "{blue} pixels of the first line");
    }

    #[test]
    fn other_endings_are_refused() {
        for name in ["plot.pdf", "plot", "svg"] {
            assert!(matches!(PlotFormat::of(Path::new(name)), Err(Error::Option { name: "plot", .. })), "{name}");
        }
        assert_eq!(PlotFormat::of(Path::new("a/b.SVG")).unwrap(), PlotFormat::Svg);
    }

    #[test]
    fn ages_have_round_ticks_inside() {
        assert_eq!(AgeAxis::new((0.3, 6.0)).ticks, [0.5, 1.0, 2.0, 5.0]);
        assert_eq!(AgeAxis::new((3.0, 3.0)).ticks.len(), 2);
    }
}
