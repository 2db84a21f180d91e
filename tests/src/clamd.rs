//! A replacement for clamd: `INSTREAM` over TCP, with the one signature that every scanner knows.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The test file of the European Institute for Computer Antivirus Research, in two halves, so that
/// this file does not contain it.
const EICAR: [&str; 2] =
    ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"];

/// Returns content that every scanner reports.
#[must_use]
pub fn eicar() -> Vec<u8> {
    EICAR.concat().into_bytes()
}

/// Listens on a free port of this machine until the test's runtime ends. Returns the value of
/// `malware.clamd`.
pub async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(scan(stream));
        }
    });
    format!("tcp:{address}")
}

async fn scan(mut stream: TcpStream) -> std::io::Result<()> {
    let mut command = [0; 10];
    stream.read_exact(&mut command).await?;
    assert_eq!(&command, b"zINSTREAM\0");
    let mut content = Vec::new();
    loop {
        let length = stream.read_u32().await? as usize;
        if length == 0 {
            break;
        }
        let begins = content.len();
        content.resize(begins + length, 0);
        stream.read_exact(&mut content[begins..]).await?;
    }
    let eicar = eicar();
    let found = content.windows(eicar.len()).any(|window| window == eicar);
    let answer = if found { "stream: Eicar-Test-Signature FOUND\0" } else { "stream: OK\0" };
    stream.write_all(answer.as_bytes()).await
}
