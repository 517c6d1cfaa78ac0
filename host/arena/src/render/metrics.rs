//! The table of every metric: metrics are rows and agents columns, since there are more
//! metrics than fit in a line.

use arena_core::report::Report;
use arena_core::statistics::metric::Metric;

use crate::render::number::plain;
use crate::render::table::{Align, Cell, Table};
use crate::screen::Paint;

/// How many agents stand side by side.
const AGENTS_PER_TABLE: usize = 6;

/// Returns as many tables as it takes.
pub fn render(report: &Report, paint: Paint) -> String {
    let mut tables = Vec::new();
    for rows in report.rows.chunks(AGENTS_PER_TABLE) {
        let mut heads = vec![("metric", Align::Left)];
        heads.extend(rows.iter().map(|row| (row.name.as_str(), Align::Right)));
        let mut table = Table::new(&heads);
        for metric in Metric::ALL {
            let mut cells = vec![Cell::from(metric.name())];
            cells.extend(rows.iter().map(|row| Cell::from(plain(row.metrics.get(metric)))));
            table.row(cells);
        }
        tables.push(table.render(paint));
    }
    tables.join("\n")
}
