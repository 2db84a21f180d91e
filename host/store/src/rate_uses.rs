//! Rate limit usage that the nodes of a fleet report. Only PostgreSQL has
//! fleets; on SQLite nothing is stored.

use uuid::Uuid;

use super::connection::{Connection, Raw};
use super::error::Error;
use super::sql::DATABASE_NOW;
use assurance_core::domain::time::Timestamp;

/// Units that another node admitted for one rate limit key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateUse {
    /// Id of the node that admitted the units.
    pub node: Uuid,
    /// Rate limit key: a session, workspace or address.
    pub key: String,
    /// Total units since the row was created.
    pub units: i64,
    /// Time of the node's last report for the key.
    pub told_at: Timestamp,
}

/// Adds the units that a node admitted, by key.
pub async fn report(
    connection: &mut Connection,
    node: Uuid,
    uses: &[(String, i64)],
) -> Result<(), Error> {
    let Raw::Postgres(connection) = connection.raw() else { return Ok(()) };
    if uses.is_empty() {
        return Ok(());
    }
    let (keys, units): (Vec<&str>, Vec<i64>) =
        uses.iter().map(|(key, units)| (key.as_str(), *units)).unzip();
    let statement = format!(
        "INSERT INTO rate_uses (node, key, units, told_at) \
         SELECT $1, key, units, {DATABASE_NOW} FROM UNNEST($2::text[], $3::bigint[]) AS told (key, units) \
         ON CONFLICT (node, key) DO UPDATE \
         SET units = rate_uses.units + excluded.units, told_at = excluded.told_at"
    );
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(node)
        .bind(keys)
        .bind(units)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the units that other nodes have reported since a time.
pub async fn others(
    connection: &mut Connection,
    node: Uuid,
    since: Timestamp,
) -> Result<Vec<RateUse>, Error> {
    let Raw::Postgres(connection) = connection.raw() else { return Ok(Vec::new()) };
    let rows: Vec<(Uuid, String, i64, i64)> = sqlx::query_as(
        "SELECT node, key, units, told_at FROM rate_uses WHERE node <> $1 AND told_at >= $2",
    )
    .bind(node)
    .bind(since.0)
    .fetch_all(connection)
    .await?;
    let read =
        |(node, key, units, told_at)| RateUse { node, key, units, told_at: Timestamp(told_at) };
    Ok(rows.into_iter().map(read).collect())
}

/// Deletes rows that no node has updated for `age_us` microseconds.
pub async fn sweep(connection: &mut Connection, age_us: i64) -> Result<(), Error> {
    let Raw::Postgres(connection) = connection.raw() else { return Ok(()) };
    let statement = format!("DELETE FROM rate_uses WHERE told_at < {DATABASE_NOW} - $1");
    sqlx::query(sqlx::AssertSqlSafe(statement)).bind(age_us).execute(connection).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, testing};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nodes_hear_what_others_let_through_until_it_is_swept() {
        let Some(fresh) = testing::fresh(Backend::Postgres).await else { return };
        let (one, two) = (Uuid::new_v4(), Uuid::new_v4());
        let mut connection = fresh.store.writer().await.unwrap();
        let uses = |units| [("session a".to_owned(), units), ("session b".to_owned(), 1)];
        report(&mut connection, one, &uses(2)).await.unwrap();
        report(&mut connection, one, &uses(3)).await.unwrap();
        assert_eq!(others(&mut connection, one, Timestamp(0)).await.unwrap(), []);
        let mut heard = others(&mut connection, two, Timestamp(0)).await.unwrap();
        heard.sort_by(|a, b| a.key.cmp(&b.key));
        let told: Vec<_> = heard.iter().map(|one| (one.key.as_str(), one.units)).collect();
        assert_eq!(told, [("session a", 5), ("session b", 2)]);
        let last = heard.iter().map(|one| one.told_at).max().unwrap();
        let later = Timestamp(last.0 + 1);
        assert_eq!(others(&mut connection, two, later).await.unwrap(), []);
        sweep(&mut connection, 60_000_000).await.unwrap();
        assert_eq!(others(&mut connection, two, Timestamp(0)).await.unwrap().len(), 2);
        sweep(&mut connection, -1).await.unwrap();
        assert_eq!(others(&mut connection, two, Timestamp(0)).await.unwrap(), []);
    }
}
