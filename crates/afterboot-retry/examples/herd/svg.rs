//! Arrivals after the server's return, a small picture a schedule, all on one scale.

use std::fmt::Write as _;
use std::time::Duration;

use crate::options::Options;
use crate::schedules::Named;
use crate::sim;

const COLUMNS: usize = 5;
const PANEL: (f64, f64) = (178.0, 152.0);
const PLOT: (f64, f64) = (144.0, 84.0);
const MARGIN: (f64, f64) = (34.0, 40.0);
const TOP: f64 = 58.0;
/// As long after the return as the pictures go.
const SHOWN: Duration = Duration::from_secs(8);

/// Colours and type for both light and dark pages.
const STYLE: &str = "\
text{font:11px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.name{font-size:10.5px;font-weight:600}\
.quiet{fill:#6e7781}.small{font-size:8px}.bar{fill:#0969da}.grid{stroke:#d0d7de;stroke-width:.5}.ground{fill:#fff}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#8d96a0}.bar{fill:#4493f8}.grid{stroke:#3d444d}\
.ground{fill:#0d1117}}";

/// Draws seed 0 of each schedule: what one server sees. The square-root scale keeps both a peak of a thousand and one of
/// fifty readable.
pub(crate) fn draw(options: &Options, schedules: &[Named]) -> String {
    let rows = schedules.len().div_ceil(COLUMNS);
    let width = COLUMNS as f64 * PANEL.0 + MARGIN.0;
    let height = TOP + rows as f64 * PANEL.1 + 14.0;
    let mut svg = String::new();
    let (clients, outage) = (options.world.clients, options.world.outage);
    let title = format!("How {clients} clients come back after {} s without their server", outage.as_secs());
    put(
        &mut svg,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">"#
        ),
    );
    put(&mut svg, format_args!("<style>{STYLE}</style>"));
    put(&mut svg, format_args!(r#"<rect class="ground" width="{width}" height="{height}" rx="6"/>"#));
    put(&mut svg, format_args!(r#"<text class="title" x="{}" y="24">{title}</text>"#, MARGIN.0));
    put(
        &mut svg,
        format_args!(
            r#"<text class="quiet" x="{}" y="42">arrivals in each 100 ms, {} s from the return on; one run; square-root scale, the same everywhere</text>"#,
            MARGIN.0,
            SHOWN.as_secs()
        ),
    );
    for (number, schedule) in schedules.iter().enumerate() {
        let x = MARGIN.0 + (number % COLUMNS) as f64 * PANEL.0;
        let y = TOP + (number / COLUMNS) as f64 * PANEL.1;
        panel(&mut svg, options, schedule, x, y);
    }
    put(&mut svg, format_args!("</svg>"));
    svg
}

fn panel(svg: &mut String, options: &Options, schedule: &Named, x: f64, y: f64) {
    let outcome = sim::run(options.world, &schedule.behaviour, 0);
    let most = options.world.clients as f64;
    let base = y + MARGIN.1 + PLOT.1;
    let height = |arrivals: f64| PLOT.1 * (arrivals / most).sqrt();
    put(svg, format_args!(r#"<text class="name" x="{x}" y="{}">{}</text>"#, y + 14.0, schedule.title));
    let (retries, peak) = (outcome.retries, outcome.peak());
    put(
        svg,
        format_args!(r#"<text class="quiet" x="{x}" y="{}">{retries} retries, peak {peak}</text>"#, y + 28.0),
    );
    for part in [0.0, 0.1, 1.0] {
        let line = base - height(most * part);
        put(svg, format_args!(r#"<path class="grid" d="M{x} {line:.1}h{}"/>"#, PLOT.0));
        put(
            svg,
            format_args!(
                r#"<text class="quiet small" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                x - 3.0,
                line + 3.0,
                (most * part).round()
            ),
        );
    }
    for second in [0, 4, 8] {
        let at = x + PLOT.0 * f64::from(second) / SHOWN.as_secs_f64();
        let anchor = if second == 0 { "start" } else { "middle" };
        put(
            svg,
            format_args!(
                r#"<text class="quiet small" x="{at:.1}" y="{:.1}" text-anchor="{anchor}">{second} s</text>"#,
                base + 11.0
            ),
        );
    }
    let windows = (SHOWN.as_millis() / sim::WINDOW.as_millis()) as usize;
    let step = PLOT.0 / windows as f64;
    let mut bars = String::new();
    for (window, arrivals) in
        outcome.arrivals.iter().take(windows).enumerate().filter(|(_, arrivals)| **arrivals > 0)
    {
        let height = height(f64::from(*arrivals));
        let left = x + window as f64 * step;
        let bar = format!("M{left:.2} {base:.1}v-{height:.1}h{:.2}v{height:.1}z", step * 0.8);
        bars.push_str(&bar);
    }
    put(svg, format_args!(r#"<path class="bar" d="{bars}"/>"#));
}

fn put(svg: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a String cannot fail.
    let _ = writeln!(svg, "{line}");
}
