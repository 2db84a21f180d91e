//! Interface `egress`: outgoing HTTP requests, in jobs only. A request handler
//! may run again after a write conflict, and a sent request cannot be undone.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::super::bindings::assurance::area::egress::{Error, Header, Host, Incoming, Outgoing};
use super::super::convert::same;
use super::super::instance::CallState;
use super::{CapabilityError, convert_error, stop};
use assurance_core::domain::manifest::Capability;
use assurance_outside::egress::{self, EgressError};
use assurance_work::SendSecretError;

impl Host for CallState {
    async fn send(&mut self, request: Outgoing) -> Result<Incoming, CapabilityError<Error>> {
        let outgoing = self.prepare(request).await?;
        let answer = self.send_prepared(vec![outgoing]).await?.pop();
        answer.unwrap_or(Err(Error::Timeout)).map_err(CapabilityError::Answer)
    }

    async fn send_all(
        &mut self,
        requests: Vec<Outgoing>,
    ) -> wasmtime::Result<Vec<Result<Incoming, Error>>> {
        let (mut outgoing, mut refused) = (Vec::new(), Vec::new());
        for request in requests {
            refused.push(match self.prepare(request).await {
                Ok(prepared) => {
                    outgoing.push(prepared);
                    None
                }
                Err(error) => Some(error.split()?),
            });
        }
        let mut answers = self.send_prepared(outgoing).await?.into_iter();
        let results = refused.into_iter().filter_map(|refused| match refused {
            Some(error) => Some(Err(error)),
            None => answers.next(),
        });
        Ok(results.collect())
    }

    fn check(&mut self, url: String) -> Result<(), CapabilityError<Error>> {
        self.enter(Capability::Egress)?;
        let checked = self.shared.egress.check(&url);
        checked.map_err(|refused| CapabilityError::Answer(Error::Refused(refused.0)))
    }

    convert_error!();
}

impl CallState {
    /// Checks an outgoing request of a guest, and adds the secret that the
    /// request names as its bearer token.
    async fn prepare(
        &mut self,
        request: Outgoing,
    ) -> Result<egress::EgressRequest, CapabilityError<Error>> {
        let shared = Arc::clone(&self.shared);
        let unit = self.enter(Capability::Egress)?;
        if !unit.spec().in_job {
            return Err(CapabilityError::Answer(Error::NotInAJob));
        }
        let bearer = match &request.bearer {
            Some(name) => {
                let origin = shared.egress.origin(&request.url);
                let origin =
                    origin.map_err(|why| CapabilityError::Answer(Error::Refused(why.0)))?;
                Some(unit.secret_to_send(name, &origin).await?)
            }
            None => None,
        };
        outgoing(request, bearer).map_err(CapabilityError::Answer)
    }

    async fn send_prepared(
        &mut self,
        requests: Vec<egress::EgressRequest>,
    ) -> wasmtime::Result<Vec<Result<Incoming, Error>>> {
        let shared = Arc::clone(&self.shared);
        let unit = self.unit(Capability::Egress)?;
        let answers = unit.send(&shared.egress, requests).await.map_err(stop)?;
        Ok(answers.into_iter().map(|answer| answer.map(incoming).map_err(Error::from)).collect())
    }
}

fn outgoing(
    request: Outgoing,
    bearer: Option<Zeroizing<Vec<u8>>>,
) -> Result<egress::EgressRequest, Error> {
    let mut headers: Vec<_> = request.headers.into_iter().map(|h| (h.name, h.value)).collect();
    if let Some(secret) = bearer {
        let token = std::str::from_utf8(&secret)
            .map_err(|_| Error::Refused("the bearer secret is not UTF-8 text".to_owned()))?;
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    Ok(egress::EgressRequest {
        method: request.method,
        url: request.url,
        headers,
        body: request.body,
        timeout_ms: request.timeout_ms,
        max_response_bytes: request.max_response_bytes,
    })
}

fn incoming(answer: egress::EgressResponse) -> Incoming {
    let header = |(name, value)| Header { name, value };
    Incoming {
        status: answer.status,
        headers: answer.headers.into_iter().map(header).collect(),
        body: answer.body,
    }
}

same!(EgressError => Error { Refused(why), Unresolved, Connection(why), Timeout, TooLarge });

impl From<SendSecretError> for Error {
    fn from(error: SendSecretError) -> Self {
        match error {
            SendSecretError::NotFound => Self::NoSecret,
            other => Self::Refused(other.to_string()),
        }
    }
}
