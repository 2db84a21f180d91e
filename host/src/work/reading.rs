//! When a call's snapshot is opened, and of what kind it is.

use super::UnitOfWork;
use crate::store::{Access, Connection, Error, Holder, Tx};

/// How far a call's reading has come.
#[derive(Debug)]
pub(super) enum Reading {
    /// Nothing was read.
    NotYet,
    /// One statement was run by itself; a second would see another state.
    Once,
    /// A snapshot is open, and later reads see what the first one saw. What
    /// the call writes does not belong to it: before that, what was read is
    /// checked to be still so.
    Snapshot(Tx),
    /// A transaction is open to which reads and writes belong, and the
    /// database answers for all of them together.
    In(Tx),
    /// A read failed half-way. Nothing more is read or kept.
    Broken,
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Documents by their ids: whether they are still the same can be checked.
    Documents,
    /// Anything else, which only a transaction can answer for.
    Other,
}

/// The connection of one read, on loan from the unit of work, which takes it
/// back with [`UnitOfWork::done`]. Not taken back, the unit is broken.
#[derive(Debug)]
pub(super) enum Lease {
    Alone(Connection),
    Snapshot(Tx),
    In(Tx),
}

impl Lease {
    pub(super) fn connection(&mut self) -> &mut Connection {
        match self {
            Self::Alone(connection) => connection,
            Self::Snapshot(tx) | Self::In(tx) => tx,
        }
    }
}

impl UnitOfWork {
    /// A connection to read from with so many statements.
    pub(super) async fn lease(&mut self, what: What, statements: usize) -> Result<Lease, Error> {
        // What is never committed needs no transaction to answer for it.
        let must_answer = self.spec.writes && what == What::Other && !self.is_playing();
        match std::mem::replace(&mut self.reading, Reading::Broken) {
            Reading::In(tx) => Ok(Lease::In(tx)),
            Reading::Snapshot(tx) if !must_answer => Ok(Lease::Snapshot(tx)),
            Reading::NotYet => self.first_lease(what, statements).await,
            Reading::Snapshot(_) | Reading::Once => {
                self.learn(must_answer);
                Err(Error::RunAgain)
            }
            Reading::Broken => Err(Error::RunAgain),
        }
    }

    /// Takes a lease back, whose statements went well.
    pub(super) fn done(&mut self, lease: Lease) {
        self.reading = match lease {
            Lease::In(tx) => Reading::In(tx),
            Lease::Snapshot(tx) => Reading::Snapshot(tx),
            Lease::Alone(connection) => {
                connection.release();
                Reading::Once
            }
        };
    }

    /// Ends what the call reads from, before it waits for somebody outside:
    /// connections are few, and another service takes its time. Reading begins
    /// anew afterwards. What was read by id is still checked when the call is
    /// committed; anything else was so when the call went out, which is what
    /// this commit asks of the database.
    ///
    /// Where the call has had writes sent to the database already, they would
    /// be kept before its end; then all stays open.
    pub(super) async fn let_go(&mut self) -> Result<(), Error> {
        if self.flushed || matches!(self.reading, Reading::Broken) {
            return Ok(());
        }
        match std::mem::replace(&mut self.reading, Reading::Broken) {
            Reading::In(tx) | Reading::Snapshot(tx) => tx.commit().await?,
            Reading::NotYet | Reading::Once | Reading::Broken => {}
        }
        self.turn.give_back();
        self.reading = Reading::NotYet;
        self.has_let_go = true;
        Ok(())
    }

    /// The transaction this call's reads and writes belong to.
    pub(super) async fn begin(&self) -> Result<Tx, Error> {
        let contended = self.spec.habit.as_ref().is_some_and(|habit| habit.is_contended());
        if self.spec.locked || contended {
            let tx = self.store.begin_locked(self.holder()).await?;
            self.turn.take();
            return Ok(tx);
        }
        self.store.begin_held(Access::Write, self.holder()).await
    }

    /// Who holds the connection.
    pub(super) fn holder(&self) -> Holder {
        Holder {
            area: self.spec.area.area.clone(),
            workspace: self.spec.call.workspace,
            in_job: self.spec.in_job,
        }
    }

    /// The connection that the call holds already, for a read that must not
    /// begin anything. A call never takes a second one while it holds one.
    pub(super) fn held(&mut self) -> Option<&mut Connection> {
        match &mut self.reading {
            Reading::In(tx) | Reading::Snapshot(tx) => Some(tx),
            Reading::NotYet | Reading::Once | Reading::Broken => None,
        }
    }

    /// More was read than the route's habit allows for.
    pub(super) fn learn(&self, asked: bool) {
        if let Some(habit) = &self.spec.habit {
            habit.read_twice();
            if asked {
                habit.asked();
            }
        }
    }

    async fn first_lease(&self, what: What, statements: usize) -> Result<Lease, Error> {
        let habit = self.spec.habit.as_ref().filter(|_| !self.spec.locked);
        let light = match habit {
            _ if !self.spec.writes || self.is_playing() => true,
            Some(habit) => what == What::Documents && !habit.asks(),
            None => false,
        };
        if !light {
            return Ok(Lease::In(self.begin().await?));
        }
        if statements == 1 && habit.is_some_and(|habit| !habit.reads_twice()) {
            return Ok(Lease::Alone(self.store.reader().await?));
        }
        Ok(Lease::Snapshot(self.store.begin_held(Access::Read, self.holder()).await?))
    }
}
