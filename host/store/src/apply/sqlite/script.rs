//! A script of a few statements for SQLite, with the required result of each.

use futures::TryStreamExt;
use sqlx::Either;

use super::super::super::Backend;
use super::super::super::connection::{Connection, DriverConnection};
use super::super::super::error::Error;
use super::super::super::sql::{Row, Sql};

/// Number of statements after which a script is sent to SQLite, so that its
/// text stays short.
const STATEMENTS: usize = 8;

/// Statements to be sent to the connection's thread as one message.
pub(super) struct Script {
    sql: Sql,
    /// Required result of each statement of the script.
    expected: Vec<Expectation>,
    /// Number of deliveries that the scripts sent so far have enqueued.
    pub(super) delivered: u64,
}

/// Required result of a statement that writes effects.
pub(super) enum Expectation {
    Any,
    /// The statement must change this number of rows; otherwise the effects
    /// fail with the error.
    Changed(u64, fn() -> Error),
    /// The statement must find this number of documents or blobs unchanged, and
    /// none that was missing.
    Unchanged(i64),
    /// The statement enqueues any number of deliveries.
    Delivered,
}

impl Default for Script {
    fn default() -> Self {
        Self { sql: Sql::new(Backend::Sqlite, ""), expected: Vec::new(), delivered: 0 }
    }
}

impl Script {
    /// Sends the script if it has enough statements.
    pub(super) async fn run_if_long(&mut self, connection: &mut Connection) -> Result<(), Error> {
        if self.expected.len() < STATEMENTS { Ok(()) } else { self.run(connection).await }
    }

    /// Sends the script and verifies its results.
    pub(super) async fn run(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let sql = std::mem::replace(&mut self.sql, Sql::new(Backend::Sqlite, ""));
        let expected = std::mem::take(&mut self.expected);
        let DriverConnection::Sqlite(c) = connection.raw() else { return Ok(()) };
        if expected.is_empty() {
            return Ok(());
        }
        #[expect(deprecated, reason = "one message to the thread instead of one a statement")]
        let mut results = sql.sqlite()?.fetch_many(c);
        for expected in expected {
            let mut row = None;
            let changed = loop {
                match results.try_next().await? {
                    Some(Either::Right(found)) => row = Some(Row::Sqlite(found)),
                    Some(Either::Left(result)) => break result.rows_affected(),
                    None => return Err(Error::RunAgain),
                }
            };
            self.verify(&expected, changed, row.as_ref())?;
        }
        Ok(())
    }

    fn verify(
        &mut self,
        expected: &Expectation,
        changed: u64,
        row: Option<&Row>,
    ) -> Result<(), Error> {
        match expected {
            Expectation::Any => Ok(()),
            Expectation::Changed(rows, otherwise) if *rows != changed => Err(otherwise()),
            Expectation::Changed(..) => Ok(()),
            Expectation::Delivered => {
                self.delivered += changed;
                Ok(())
            }
            Expectation::Unchanged(there) => match row {
                Some(row) if row.integer(0)? == *there && row.integer(1)? == 0 => Ok(()),
                _ => Err(Error::RunAgain),
            },
        }
    }

    /// Adds a statement that begins with this text.
    pub(super) fn begin(&mut self, text: &str) -> &mut Sql {
        if !self.expected.is_empty() {
            self.sql.push("; ");
        }
        self.expected.push(Expectation::Any);
        self.sql.push(text)
    }

    /// Requires that the last statement changes this number of rows.
    pub(super) fn expect(&mut self, rows: usize, otherwise: fn() -> Error) {
        self.require(Expectation::Changed(rows as u64, otherwise));
    }

    /// Requires a result of the last statement.
    pub(super) fn require(&mut self, expectation: Expectation) {
        if let Some(last) = self.expected.last_mut() {
            *last = expectation;
        }
    }
}
