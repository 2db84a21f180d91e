//! Signs links for an area's own routes.

use super::UnitOfWork;
use super::error::SignedLinkError;
use assurance_core::domain::manifest::LinkHolder;
use assurance_core::domain::time::Timestamp;
use assurance_core::links::{self, LinkGrant};

/// Maximum size of a signed link's claims, in bytes.
const MAX_CLAIMS: usize = 2_048;

impl UnitOfWork {
    /// Returns the token of a signed link for one of the area's routes that
    /// accept signed links.
    pub fn sign_link(
        &self,
        operation: &str,
        claims: String,
        expires_at: Timestamp,
    ) -> Result<String, SignedLinkError> {
        let misuse = SignedLinkError::Misuse;
        let holder = self.spec.area.links.get(operation);
        let holder = holder.ok_or_else(|| misuse(format!("{operation} takes no signed link")))?;
        if claims.len() > MAX_CLAIMS || !claims.trim_start().starts_with('{') {
            return Err(misuse(format!("claims are a JSON object of at most {MAX_CLAIMS} bytes")));
        }
        let session = match holder {
            LinkHolder::SameSession => Some(self.spec.session.ok_or(SignedLinkError::NoSession)?),
            LinkHolder::Bearer | LinkHolder::SignedIn => None,
        };
        if *holder == LinkHolder::Bearer && self.spec.actor.is_none() {
            return Err(SignedLinkError::NoSession);
        }
        let grant = LinkGrant {
            area: self.spec.area.area.clone(),
            operation: operation.to_owned(),
            workspace: self.spec.call.workspace,
            user: self.spec.actor,
            expires_at,
            claims,
        };
        links::sign(&self.keys, &grant, session)
            .map_err(|error| misuse(format!("the claims are not JSON: {error}")))
    }
}
