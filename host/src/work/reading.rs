//! When a call's snapshot is opened, and of what kind it is.

use super::UnitOfWork;
use crate::store::{Access, Connection, Error, Tx};

/// How far a call's reading has come.
#[derive(Debug)]
pub(super) enum Reading {
    /// Nothing was read.
    NotYet,
    /// One statement was run by itself; a second would see another state.
    Once,
    /// A transaction is open, and later reads see what the first one saw.
    In(Tx),
    /// A read failed half-way. Nothing more is read or kept.
    Broken,
}

/// The connection of one read, on loan from the unit of work, which takes it
/// back with [`UnitOfWork::done`]. Not taken back, the unit is broken.
#[derive(Debug)]
pub(super) enum Lease {
    Alone(Connection),
    In(Tx),
}

impl Lease {
    pub(super) fn connection(&mut self) -> &mut Connection {
        match self {
            Self::Alone(connection) => connection,
            Self::In(tx) => tx,
        }
    }
}

impl UnitOfWork {
    /// A connection to read from with so many statements.
    pub(super) async fn lease(&mut self, statements: usize) -> Result<Lease, Error> {
        match std::mem::replace(&mut self.reading, Reading::Broken) {
            Reading::In(tx) => Ok(Lease::In(tx)),
            Reading::NotYet if statements == 1 && self.reads_once() => {
                Ok(Lease::Alone(self.store.reader().await?))
            }
            Reading::NotYet => {
                self.remember_second_read(statements);
                Ok(Lease::In(self.begin().await?))
            }
            Reading::Once => {
                self.remember_second_read(2);
                Err(Error::RunAgain)
            }
            Reading::Broken => Err(Error::RunAgain),
        }
    }

    /// Takes a lease back, whose statements went well.
    pub(super) fn done(&mut self, lease: Lease) {
        self.reading = match lease {
            Lease::In(tx) => Reading::In(tx),
            Lease::Alone(connection) => {
                connection.release();
                Reading::Once
            }
        };
    }

    /// The transaction this call's reads and writes belong to.
    pub(super) async fn begin(&self) -> Result<Tx, Error> {
        match (self.spec.writes, self.spec.locked) {
            (false, _) => self.store.begin(Access::Read).await,
            (true, false) => self.store.begin(Access::Write).await,
            (true, true) => self.store.begin_locked(self.spec.call.workspace).await,
        }
    }

    fn reads_once(&self) -> bool {
        let habit = self.spec.habit.as_ref();
        !self.spec.writes && !self.spec.locked && habit.is_some_and(|habit| !habit.reads_twice())
    }

    fn remember_second_read(&self, statements: usize) {
        if let Some(habit) = self.spec.habit.as_ref().filter(|_| statements > 1) {
            habit.read_twice();
        }
    }
}
