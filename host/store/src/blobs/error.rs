//! Error messages of the blob store. They are safe to log.

use std::error::Error as StdError;

use super::super::error::Error;
use super::BlobStoreLocation;

impl From<object_store::Error> for Error {
    fn from(failed: object_store::Error) -> Self {
        Self::Blobs(message_with_cause(&failed).into())
    }
}

/// Converts an error of an upload's writer, which wraps the blob store's error
/// in an I/O error.
pub(super) fn of_writer(failed: &std::io::Error) -> Error {
    Error::Blobs(message_with_cause(failed).into())
}

/// Returns the error for a blob folder or bucket that cannot be used; the
/// message includes the fix.
pub(super) fn unusable(place: &BlobStoreLocation, failed: &object_store::Error) -> Error {
    let said = message_with_cause(failed);
    let text = match place {
        BlobStoreLocation::Folder(folder) => format!(
            "the folder {} cannot be used: {said}; make it this user's to write, or name another \
             in blobs.dir",
            folder.display()
        ),
        BlobStoreLocation::Bucket(bucket) => {
            format!("the bucket {:?} cannot be used: {said}; {}", bucket.name, way_out(failed))
        }
    };
    Error::Blobs(text.into())
}

fn way_out(failed: &object_store::Error) -> &'static str {
    match failed {
        object_store::Error::NotFound { .. } => "create it, or set blobs.url to another bucket",
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => {
            "check the credentials (blobs.credentials_file, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY) and that they may list, get, put and delete objects there"
        }
        _ => {
            "can this machine reach the service (blobs.endpoint, blobs.region), and are there \
             credentials for it that may list, get, put and delete (blobs.credentials_file, or \
             AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)?"
        }
    }
}

/// Returns the error's text, followed by its root cause if the text does not
/// contain it.
fn message_with_cause(failed: &(dyn StdError + 'static)) -> String {
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

/// Returns the text of an S3 service's error with only code and message of its
/// XML document. The rest quotes the request, including signature data.
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
        assert_eq!(message_with_cause(&failed), "Generic S3 error: connection refused");
    }
}
