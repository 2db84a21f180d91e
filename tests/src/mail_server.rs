//! A mail server on a loopback port: `aiosmtpd` from PyPI, an independent implementation of SMTP.
//! It requires a user and a password and stores the messages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::process::ServerProcess;
use crate::{python, within};

/// Python script of the server. It prints its port, and then each message as a line of JSON. Mail
/// to `gone@…` is refused permanently, the first mail to `later@…` temporarily.
const SERVE: &str = r#"
import asyncio, email, email.policy, json
from aiosmtpd.smtp import SMTP, AuthResult

class Handler:
    put_off = False

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone@"):
            return "550 5.1.1 no such mailbox"
        if address.startswith("later@") and not Handler.put_off:
            Handler.put_off = True
            return "451 4.3.0 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({
            "sender": envelope.mail_from,
            "recipients": envelope.rcpt_tos,
            "from": message["from"],
            "to": message["to"],
            "subject": message["subject"],
            "message_id": message["message-id"],
            "text": message.get_content(),
        }), flush=True)
        return "250 OK"

def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"assurance", b"p@ss/word"))

def session():
    return SMTP(Handler(), authenticator=authenticate, auth_required=True,
                auth_require_tls=False, hostname="mail.test")

async def serve():
    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(serve())
"#;

/// A running mail server; it stops when dropped.
#[derive(Debug)]
pub struct MailServer {
    /// Value for `mail.smtp_url`, with user and password.
    pub url: String,
    received: Arc<Mutex<Vec<Value>>>,
    _process: ServerProcess,
}

impl MailServer {
    /// The password in `url`, plain and percent-encoded.
    pub const PASSWORD: [&str; 2] = ["p@ss/word", "p%40ss%2Fword"];

    /// Starts a server on a free port.
    #[must_use]
    pub fn start() -> Self {
        let (process, mut lines) = python::serve(&["aiosmtpd"], SERVE, &[]);
        let port: u16 = python::next_line(&mut lines).parse().expect("a port");
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("a message in JSON");
                kept.lock().expect("no panic while holding it").push(message);
            }
        });
        let url = format!("smtp://assurance:{}@127.0.0.1:{port}", Self::PASSWORD[1]);
        Self { url, received, _process: process }
    }

    /// Returns the received messages.
    #[must_use]
    pub fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no panic while holding it").clone()
    }

    /// Waits for mail to this address and returns the last one.
    pub async fn wait_for(&self, address: &str, limit: Duration) -> Value {
        within(limit, format!("mail to {address} is received"), async || {
            self.received().into_iter().rev().find(|message| message["to"] == address)
        })
        .await
    }
}
