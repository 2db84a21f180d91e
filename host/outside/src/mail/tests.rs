//! Tests of messages and of the mail folder; a real mail server is in the
//! end-to-end tests.

use std::os::unix::fs::PermissionsExt as _;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;

use super::*;
use assurance_core::config::SecretString;

const FROM: &str = "Assurance <assurance@example.org>";
const AT: Timestamp = Timestamp(1_790_000_000_000_000);

fn mail(data_dir: &std::path::Path) -> Mailer {
    Mailer::new(&Config { data_dir: data_dir.to_owned(), ..Config::default() }).unwrap()
}

fn message(to: &str, subject: &str) -> Message {
    Message {
        to: to.to_owned(), subject: subject.to_owned(), text: "Grüße\nand a line".to_owned()
    }
}

#[tokio::test]
async fn a_message_is_kept_for_its_owner_only_and_reads_as_mail() {
    let data_dir = tempfile::tempdir().unwrap();
    let folder = data_dir.path().join("mail");
    let mail = mail(data_dir.path());
    let sent = mail.send(message("ada@example.org", "Grüße"), Uuid::nil(), AT).await;
    assert_eq!(sent, Ok(()));
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    for line in [
        "To: ada@example.org\r\n",
        "Subject: =?utf-8?b?R3LDvMOfZQ==?=\r\n",
        "Message-ID: <00000000-0000-0000-0000-000000000000@localhost>\r\n",
        "Date: Mon, 21 Sep 2026 14:13:20 +0000\r\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mail = mail(folder.path());
    let long = "x".repeat(201);
    for (to, subject) in [
        ("ada", "Hello"),
        ("ada@example.org\r\nBcc: all@example.org", "Hello"),
        ("ada@example.org, bea@example.org", "Hello"),
        ("ada@example.org", ""),
        ("ada@example.org", "Hello\r\nBcc: all@example.org"),
        ("ada@example.org", long.as_str()),
    ] {
        let sent = mail.send(message(to, subject), Uuid::nil(), AT).await;
        assert!(matches!(sent, Err(MailError::Refused(_))), "{to:?} {subject:?}: {sent:?}");
    }
    let text = "x".repeat(65_537);
    let large = Message { text, ..message("ada@example.org", "Hello") };
    assert!(matches!(mail.send(large, Uuid::nil(), AT).await, Err(MailError::Refused(_))));
}

fn by_server(url: &str, from: &str) -> anyhow::Result<Mailer> {
    let mail = MailConfig {
        smtp_url: Some(SecretString::from(url.to_owned())),
        from: Some(from.to_owned()),
        timeout_ms: 2_000,
        ..MailConfig::default()
    };
    Mailer::new(&Config { mail, ..Config::default() })
}

#[tokio::test]
async fn a_server_that_is_not_there_is_worth_another_try() {
    let mail = by_server("smtp://127.0.0.1:1", FROM).unwrap();
    let sent = mail.send(message("ada@example.org", "Hello"), Uuid::nil(), AT).await;
    assert!(matches!(sent, Err(MailError::Unavailable(_))), "{sent:?}");
}

/// A mail server that responds to each command with the first reply of its verb.
async fn respond(listener: TcpListener, replies: &[(&str, &str)]) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufStream::new(stream);
    let mut reply = "220 mail.example.org ESMTP\r\n";
    let mut command = String::new();
    loop {
        stream.write_all(reply.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        command.clear();
        if stream.read_line(&mut command).await.unwrap() == 0 {
            return;
        }
        let known = replies.iter().find(|(verb, _)| command.starts_with(verb));
        reply = known.map_or("221 Bye\r\n", |(_, reply)| *reply);
    }
}

#[tokio::test]
async fn only_a_refusal_of_the_message_itself_is_final() {
    for (auth, recipient, is_final) in [
        ("535 5.7.8 Authentication credentials invalid\r\n", "", false),
        ("538 5.7.11 Encryption required\r\n", "", false),
        ("235 2.7.0 Welcome\r\n", "451 Try again\r\n", false),
        ("235 2.7.0 Welcome\r\n", "550 5.1.1 No such mailbox\r\n", true),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = [
            ("EHLO", "250-mail.example.org\r\n250 AUTH PLAIN\r\n"),
            ("AUTH", auth),
            ("MAIL", "250 OK\r\n"),
            ("RCPT", recipient),
        ];
        let server = tokio::spawn(async move { respond(listener, &replies).await });
        let url = format!("smtp://user:password@127.0.0.1:{port}");
        let mail = by_server(&url, FROM).unwrap();
        let sent = mail.send(message("ada@example.org", "Hello"), Uuid::nil(), AT).await;
        assert_eq!(matches!(sent, Err(MailError::Rejected(_))), is_final, "{sent:?}");
        assert_eq!(matches!(sent, Err(MailError::Unavailable(_))), !is_final, "{sent:?}");
        server.abort();
    }
}

#[test]
fn a_wrong_server_or_sender_is_told_by_its_key_without_the_password() {
    let wrong = |url, from| by_server(url, from).unwrap_err().to_string();
    let told = wrong("pop3://u:hunter2@host", "a@example.org");
    assert!(told.contains("mail.smtp_url") && !told.contains("hunter2"), "{told}");
    let told = wrong("smtp://host", "nobody at all");
    assert!(told.contains("mail.from"), "{told}");
}
