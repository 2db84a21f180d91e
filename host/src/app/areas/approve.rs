//! An operator grants a version what it asks for beyond the live one.

use serde_json::json;

use super::super::App;
use super::InstallError;
use super::trail::Trail;
use crate::domain::deployment::Step;
use crate::store::{Access, deployments};

/// Grants it; from then on the version can be activated.
///
/// # Errors
/// There is no such version, or it waits for nothing.
pub async fn approve(
    app: &App,
    who: &str,
    area: &str,
    digest: &str,
    why: Option<&str>,
) -> Result<(), InstallError> {
    let mut trail = Trail::new(app, who, area, Some(digest));
    let mut tx = app.store.begin(Access::WriteLocked).await?;
    let found = deployments::find(&mut tx, area, digest).await?;
    let unknown = || InstallError::NotKnown { area: area.to_owned(), digest: digest.to_owned() };
    let found = found.ok_or_else(unknown)?;
    if !deployments::approve(&mut tx, area, digest, who, app.clock.now()).await? {
        let (area, digest, stage) = (found.area, found.digest, found.stage);
        return Err(InstallError::NotWaiting { area, digest, stage });
    }
    trail.note(Step::Approved, why, Some(json!({"stage": "staged"})));
    trail.keep_with(&mut tx).await?;
    tx.commit().await?;
    tracing::info!(
        target: "security",
        event = "version_approved",
        operator = who,
        area.name = area,
        area.digest = digest,
        "version approved"
    );
    Ok(())
}
