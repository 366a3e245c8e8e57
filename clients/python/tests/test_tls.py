"""Whom a client trusts, and what it says when it does not. The end-to-end tests let it talk to a real server."""

# isort: skip_file
from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from conftest import StartServer
from fake_server import TOKEN

import tandem


@pytest.fixture(autouse=True)
def no_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEM_CA", raising=False)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, r"cannot be read \(No such file or directory\)"),
        ("", "holds no certificate in PEM"),
        ("no certificate", "holds no certificate in PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate in PEM"),
    ],
)
@pytest.mark.parametrize("by", ["ca", "TANDEM_CA"])
def test_an_authority_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, fault: str, by: str
) -> None:
    path = tmp_path / "mine.pem"
    if content is not None:
        path.write_text(content)
    if by == "TANDEM_CA":
        monkeypatch.setenv("TANDEM_CA", str(path))
    said = rf"^ca \(or TANDEM_CA\): '.*mine\.pem' {fault}: copy authority\.pem from the folder tls"
    with pytest.raises(ValueError, match=said):
        tandem.Client("https://127.0.0.1:1", TOKEN, ca=path if by == "ca" else None)
    tandem.Client("http://127.0.0.1:1", TOKEN)  # there is nothing to trust


def test_a_server_without_tls(start_server: StartServer) -> None:
    server = start_server()
    client = tandem.Client(server.url.replace("http://", "https://"), TOKEN, patience=60)
    with pytest.raises(tandem.TandemError, match="does not speak TLS"):
        client.studies()


def test_a_server_with_tls_that_is_asked_without() -> None:
    refusal = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(refusal)

        thread = threading.Thread(target=answer)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(tandem.TandemError, match="use https://"):
            tandem.Client(f"http://127.0.0.1:{port}", TOKEN).studies()
        thread.join()
