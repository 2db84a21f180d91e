//! What a blob store says when it cannot, in words that an operator may read
//! and that may be logged.

use std::error::Error as StdError;

use super::super::error::Error;
use super::Place;

impl From<object_store::Error> for Error {
    fn from(failed: object_store::Error) -> Self {
        Self::Blobs(said(&failed).into())
    }
}

/// A writer's own error is one of the blob store, wrapped.
pub(super) fn of_writer(failed: &std::io::Error) -> Error {
    Error::Blobs(said(failed).into())
}

/// Why a place cannot be used, with the way out.
pub(super) fn unusable(place: &Place, failed: &object_store::Error) -> Error {
    let said = said(failed);
    let text = match place {
        Place::Folder(folder) => format!(
            "the folder {} cannot be used: {said}; make it this user's to write, or name another \
             in blobs.dir",
            folder.display()
        ),
        Place::Bucket(bucket) => {
            format!("the bucket {:?} cannot be used: {said}; {}", bucket.name, way_out(failed))
        }
    };
    Error::Blobs(text.into())
}

fn way_out(failed: &object_store::Error) -> &'static str {
    match failed {
        object_store::Error::NotFound { .. } => "make it, or name another in blobs.url",
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            "are the credentials right (blobs.credentials_file, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY), and may they list, get, put and delete objects there?"
        }
        _ => {
            "can this machine reach the service (blobs.endpoint, blobs.region), and are there \
             credentials for it that may list, get, put and delete (blobs.credentials_file, or \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)?"
        }
    }
}

/// The error, and the first of its causes where it does not tell that itself.
fn said(failed: &(dyn StdError + 'static)) -> String {
    let mut text = without_document(&failed.to_string());
    let causes = std::iter::successors(failed.source(), |cause| (*cause).source());
    if let Some(first) = causes.last().map(|cause| without_document(&cause.to_string()))
        && !text.contains(&first)
    {
        text.push_str(": ");
        text.push_str(&first);
    }
    text
}

/// Of a service's answer the code and the message: the rest of it quotes the
/// request, and with it what the request was signed with.
fn without_document(text: &str) -> String {
    let Some((before, document)) = text.split_once('<') else { return text.to_owned() };
    let element = |name: &str| {
        let (_, rest) = document.split_once(&format!("<{name}>"))?;
        rest.split_once("</").map(|(content, _)| content)
    };
    let told: Vec<&str> = ["Code", "Message"].into_iter().filter_map(element).collect();
    format!("{before}{}", told.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_without_what_it_quotes_of_the_request() {
        let answer = "403 Forbidden: <?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch\
            </Code><Message>The signature is wrong.</Message><CanonicalRequest>\
            x-amz-security-token:hush</CanonicalRequest></Error>";
        let told = without_document(answer);
        assert_eq!(told, "403 Forbidden: SignatureDoesNotMatch: The signature is wrong.");
        assert_eq!(without_document("502 Bad Gateway: <html>hush</html>"), "502 Bad Gateway: ");
    }

    #[test]
    fn the_first_cause_is_told_once() {
        let cause = std::io::Error::other("connection refused");
        let failed = object_store::Error::Generic { store: "S3", source: Box::new(cause) };
        assert_eq!(said(&failed), "Generic S3 error: connection refused");
    }
}
