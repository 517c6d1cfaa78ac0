//! Columns that line up.
//!
//! Not here: what the cells mean. A cell is text that is already safe to print.

use unicode_width::UnicodeWidthStr;

use crate::screen::{Paint, Tone};

/// Which edge of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell in a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell { text, tone: Tone::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::from(text.to_owned())
    }
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    heads: Vec<(String, Align)>,
    rows: Vec<Vec<Cell>>,
    gap: &'static str,
}

impl Table {
    /// Starts a table with these columns.
    pub fn new(heads: &[(&str, Align)]) -> Table {
        let heads = heads.iter().map(|(head, align)| ((*head).to_owned(), *align)).collect();
        Table { heads, rows: Vec::new(), gap: "  " }
    }

    /// Puts a single blank between columns, for tables of many narrow ones.
    pub fn tight(mut self) -> Table {
        self.gap = " ";
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the row does not have one cell per column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.heads.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    /// Returns the lines, indented by two blanks, without trailing blanks.
    pub fn render(&self, paint: Paint) -> String {
        let widths = self.widths();
        let heads: Vec<Cell> =
            self.heads.iter().map(|(head, _)| Cell::toned(head.clone(), Tone::Bold)).collect();
        let mut lines = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            lines.push_str(&self.line(row, &widths, paint));
            lines.push('\n');
        }
        lines
    }

    fn widths(&self) -> Vec<usize> {
        let width = |index: usize, head: &str| {
            let cells = self.rows.iter().map(|row| row[index].text.width());
            cells.chain([head.width()]).max().unwrap_or(0)
        };
        self.heads.iter().enumerate().map(|(index, (head, _))| width(index, head)).collect()
    }

    fn line(&self, row: &[Cell], widths: &[usize], paint: Paint) -> String {
        let mut line = String::from("  ");
        for (index, cell) in row.iter().enumerate() {
            if index > 0 {
                line.push_str(self.gap);
            }
            let blanks = " ".repeat(widths[index] - cell.text.width());
            let text = paint.paint(cell.tone, &cell.text);
            match self.heads[index].1 {
                Align::Left => line.extend([text, blanks]),
                Align::Right => line.extend([blanks, text]),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_width_of_a_letter() {
        let mut table = Table::new(&[("agent", Align::Left), ("mean", Align::Right)]);
        table.row(vec!["漢字".into(), "0.5".into()]);
        table.row(vec!["boulware".into(), "-0.25".into()]);
        let expected = "  agent      mean\n  漢字        0.5\n  boulware  -0.25\n";
        assert_eq!(table.render(Paint::OFF), expected);
    }
}
