"""Certificates for tests: an authority of our own, and servers that it vouches for."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """An authority, a certificate for 127.0.0.1 (also written 127.1), and one for another name."""

    authority: Path
    certificate: Path
    key: Path
    other_certificate: Path
    other_authority: Path


def make_certificates(folder: Path) -> Certificates:
    authority = _authority(folder, "authority")
    return Certificates(
        authority,
        _signed(folder, "server", authority, "IP:127.0.0.1,DNS:localhost,DNS:127.1"),
        folder / "server.key",
        _signed(folder, "other", authority, "DNS:elsewhere.example"),
        _authority(folder, "stranger"),
    )


def _authority(folder: Path, name: str) -> Path:
    made = folder / f"{name}.pem"
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", str(folder / f"{name}.key"), "-out", str(made), "-days", "2",
        "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    return made


def _signed(folder: Path, name: str, authority: Path, names: str) -> Path:
    request, made, extension = (folder / f"{name}{end}" for end in (".csr", ".pem", ".ext"))
    key = folder / f"{name}.key"
    _openssl(
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}",
    )  # fmt: skip
    key.chmod(0o644)  # the servers run as other users
    extension.write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
    _openssl(
        "x509", "-req", "-in", str(request), "-CA", str(authority),
        "-CAkey", str(authority.with_suffix(".key")), "-CAcreateserial", "-out", str(made),
        "-days", "2", "-extfile", str(extension),
    )  # fmt: skip
    return made


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)
