//! The nodes of the fleet, and the versions that each reports to run.

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::connection::{Connection, execute, fetch_all, on};
use super::error::{Error, parsed};
use assurance_core::domain::deployment::NodeAreaReport;
use assurance_core::domain::time::Timestamp;

type NodeReportRow =
    (Uuid, String, String, Option<String>, Option<String>, String, Option<String>, i64);

/// A node of the fleet with the time of its last heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveNode {
    /// Id of the node's process.
    pub node: Uuid,
    /// Name of the machine that the node's process runs on.
    pub host: String,
    /// Time of the node's last heartbeat.
    pub seen_at: Timestamp,
}

/// Records a heartbeat of a node.
pub async fn see(
    connection: &mut Connection,
    node: Uuid,
    host: &str,
    now: Timestamp,
) -> Result<(), Error> {
    let sql = "INSERT INTO nodes (id, host, seen_at) VALUES ($1, $2, $3) \
               ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at";
    execute!(connection, sql, node, host, now.0);
    Ok(())
}

/// Lists nodes with a heartbeat since `seen_since`, whether or not they run an
/// area.
pub async fn alive(
    connection: &mut Connection,
    seen_since: Timestamp,
) -> Result<Vec<LiveNode>, Error> {
    let sql = "SELECT id, host, seen_at FROM nodes WHERE seen_at >= $1 ORDER BY host, id";
    let rows: Vec<(Uuid, String, i64)> = fetch_all!(connection, sql, seen_since.0);
    let node = |(node, host, seen_at)| LiveNode { node, host, seen_at: Timestamp(seen_at) };
    Ok(rows.into_iter().map(node).collect())
}

/// Deletes a node that ends, and nodes without a heartbeat since `seen_before`,
/// together with their reports.
pub async fn forget(
    connection: &mut Connection,
    node: Uuid,
    seen_before: Timestamp,
) -> Result<(), Error> {
    execute!(connection, "DELETE FROM nodes WHERE id = $1 OR seen_at < $2", node, seen_before.0);
    report(connection, node, &[], seen_before).await
}

/// Replaces a node's reports of the area versions that it runs, and deletes
/// those of nodes without a heartbeat since `forget_before`.
pub async fn report(
    connection: &mut Connection,
    node: Uuid,
    reports: &[NodeAreaReport],
    forget_before: Timestamp,
) -> Result<(), Error> {
    let sql = "DELETE FROM area_nodes WHERE node = $1 OR seen_at < $2";
    execute!(connection, sql, node, forget_before.0);
    if !reports.is_empty() {
        on!(connection, c => {
            let mut insert = QueryBuilder::new(
                "INSERT INTO area_nodes \
                 (node, area, host, digest, candidate, state, why, seen_at) ",
            );
            insert.push_values(reports, |mut row, report| {
                row.push_bind(report.node)
                    .push_bind(&report.area)
                    .push_bind(&report.host)
                    .push_bind(&report.digest)
                    .push_bind(&report.candidate)
                    .push_bind(report.state.as_str())
                    .push_bind(&report.why)
                    .push_bind(report.seen_at.0);
            });
            insert.build().execute(&mut *c).await?.rows_affected()
        });
    }
    Ok(())
}

/// Lists which area versions the nodes report to run; only reports since
/// `seen_since`.
pub async fn list(
    connection: &mut Connection,
    seen_since: Timestamp,
) -> Result<Vec<NodeAreaReport>, Error> {
    let sql = "SELECT node, area, host, digest, candidate, state, why, seen_at FROM area_nodes \
               WHERE seen_at >= $1 ORDER BY area, host, node";
    let rows: Vec<NodeReportRow> = fetch_all!(connection, sql, seen_since.0);
    rows.into_iter().map(from_row).collect()
}

fn from_row(row: NodeReportRow) -> Result<NodeAreaReport, Error> {
    let (node, area, host, digest, candidate, state, why, seen_at) = row;
    let (state, seen_at) = (parsed("area_nodes.state", &state)?, Timestamp(seen_at));
    Ok(NodeAreaReport { node, host, area, digest, candidate, state, why, seen_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::on_both;
    use assurance_core::domain::deployment::NodeVersionState;

    fn says(node: Uuid, area: &str, seen_at: i64) -> NodeAreaReport {
        NodeAreaReport {
            node,
            host: "n1".into(),
            area: area.into(),
            digest: Some("d".into()),
            candidate: Some("e".into()),
            state: NodeVersionState::Failed,
            why: Some("it does not load".into()),
            seen_at: Timestamp(seen_at),
        }
    }

    on_both! {
        async fn a_node_replaces_what_it_said_and_old_ones_are_forgotten(store: &Store) {
            let (one, two) = (Uuid::new_v4(), Uuid::new_v4());
            let mut connection = store.writer().await.unwrap();
            let both = [says(one, "notes", 1), says(one, "support", 1)];
            report(&mut connection, one, &both, Timestamp(0)).await.unwrap();
            report(&mut connection, two, &[says(two, "notes", 5)], Timestamp(0)).await.unwrap();
            report(&mut connection, one, &[says(one, "notes", 6)], Timestamp(0)).await.unwrap();
            assert_eq!(list(&mut connection, Timestamp(0)).await.unwrap().len(), 2);
            assert_eq!(list(&mut connection, Timestamp(6)).await.unwrap(), [says(one, "notes", 6)]);
            report(&mut connection, one, &[], Timestamp(6)).await.unwrap();
            assert!(list(&mut connection, Timestamp(0)).await.unwrap().is_empty());
        }

        async fn a_node_is_alive_until_it_ends_or_is_silent(store: &Store) {
            let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
            let mut connection = store.writer().await.unwrap();
            for (node, at) in [(one, 1), (two, 1), (one, 5)] {
                see(&mut connection, node, "n1", Timestamp(at)).await.unwrap();
            }
            let is_one = LiveNode { node: one, host: "n1".into(), seen_at: Timestamp(5) };
            assert_eq!(alive(&mut connection, Timestamp(5)).await.unwrap(), [is_one]);
            assert_eq!(alive(&mut connection, Timestamp(1)).await.unwrap().len(), 2);
            forget(&mut connection, one, Timestamp(2)).await.unwrap();
            assert!(alive(&mut connection, Timestamp(0)).await.unwrap().is_empty());
        }
    }
}
