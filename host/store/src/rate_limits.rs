//! State of the rate limits that the nodes of a fleet share: one row for each key, however many
//! nodes use it. Only PostgreSQL has fleets; on SQLite nothing is stored.

use std::collections::HashMap;

use super::connection::{Connection, DriverConnection};
use super::error::Error;
use super::sql::DATABASE_NOW;

/// Charges rate-limit keys in the database. A cost is the time in microseconds in which the key
/// regains it; no key owes more than `max_debt_us`. Returns the microseconds until each key has its
/// full quota again, in the order of `charges`.
///
/// The generic cell rate algorithm: a key's state is the time at which it has its full quota. Rows
/// are locked in the order of keys, so that nodes do not wait for each other in a circle.
pub async fn charge(
    connection: &mut Connection,
    charges: &[(String, i64)],
    max_debt_us: i64,
) -> Result<Vec<i64>, Error> {
    let DriverConnection::Postgres(connection) = connection.raw() else { return Ok(Vec::new()) };
    let (keys, costs): (Vec<&str>, Vec<i64>) =
        charges.iter().map(|(key, cost)| (key.as_str(), *cost)).unzip();
    let statement = format!(
        "WITH clock AS MATERIALIZED (SELECT {DATABASE_NOW} AS now) \
         INSERT INTO rate_limits AS known (key, charged_at, regained_at) \
         SELECT key, now, now + LEAST(cost, $3) \
         FROM UNNEST($1::text[], $2::bigint[]) AS charge (key, cost), clock ORDER BY key \
         ON CONFLICT (key) DO UPDATE SET charged_at = excluded.charged_at, \
         regained_at = LEAST(GREATEST(known.regained_at, excluded.charged_at) \
         + excluded.regained_at - excluded.charged_at, excluded.charged_at + $3) \
         RETURNING key, regained_at - charged_at"
    );
    let waits: Vec<(String, i64)> = sqlx::query_as(sqlx::AssertSqlSafe(statement))
        .bind(keys)
        .bind(costs)
        .bind(max_debt_us)
        .fetch_all(connection)
        .await?;
    let waits: HashMap<String, i64> = waits.into_iter().collect();
    let wait = |(key, _): &(String, i64)| waits.get(key).copied().unwrap_or_default();
    Ok(charges.iter().map(wait).collect())
}

/// Deletes the rate-limit keys that have their full quota again.
pub async fn forget_regained(connection: &mut Connection) -> Result<(), Error> {
    let DriverConnection::Postgres(connection) = connection.raw() else { return Ok(()) };
    // A row that another node charges stays, so that the two never wait for each other.
    let statement = format!(
        "DELETE FROM rate_limits WHERE key IN (SELECT key FROM rate_limits \
         WHERE regained_at < {DATABASE_NOW} FOR UPDATE SKIP LOCKED)"
    );
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, testing};

    const WINDOW_US: i64 = 60_000_000;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn charges_of_all_nodes_add_up_to_the_maximum_debt() {
        let Some(fresh) = testing::fresh(Backend::Postgres).await else { return };
        let mut connection = fresh.store.writer().await.unwrap();
        let charges = |cost| [("session b".to_owned(), 1), ("session a".to_owned(), cost)];
        let mut waits = Vec::new();
        for cost in [20_000_000, 30_000_000, 90_000_000] {
            waits.push(charge(&mut connection, &charges(cost), WINDOW_US).await.unwrap()[1]);
        }
        // Time passes between the charges, and is regained.
        let close = |wait: i64, most: i64| (most - 10_000_000..=most).contains(&wait);
        assert!(close(waits[0], 20_000_000) && close(waits[1], 50_000_000), "{waits:?}");
        assert_eq!(waits[2], WINDOW_US);

        forget_regained(&mut connection).await.unwrap();
        let none = [("session a".to_owned(), 0), ("session b".to_owned(), 0)];
        let rest = charge(&mut connection, &none, WINDOW_US).await.unwrap();
        assert!(close(rest[0], WINDOW_US) && rest[1] == 0, "{rest:?}");
    }
}
