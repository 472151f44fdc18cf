"""Development certificates: made when they are needed, and only then."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from webhook.certs import development
from webhook.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def leaf(files: development.Files) -> x509.Certificate:
    return x509.load_pem_x509_certificate(files.cert.read_bytes())


def addresses(files: development.Files) -> list[str]:
    names = leaf(files).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [
        *names.get_values_for_type(x509.DNSName),
        *(str(address) for address in names.get_values_for_type(x509.IPAddress)),
    ]


def content(files: development.Files) -> tuple[bytes, ...]:
    return files.ca.read_bytes(), files.cert.read_bytes(), files.key.read_bytes()


def test_they_are_made_for_this_machine_and_hold_for_90_days(tmp_path: Path) -> None:
    files = development.ensure(tmp_path / "certs")
    assert addresses(files) == ["localhost", "127.0.0.1", "::1"]
    now = datetime.now(UTC)
    assert abs(leaf(files).not_valid_before_utc - (now - timedelta(hours=1))) < timedelta(minutes=1)
    assert abs(leaf(files).not_valid_after_utc - (now + timedelta(days=90))) < timedelta(minutes=1)


def test_the_key_is_for_the_owner_alone(tmp_path: Path) -> None:
    files = development.ensure(tmp_path)
    assert stat.S_IMODE(files.key.stat().st_mode) == 0o600


def test_no_key_of_the_ca_is_written(tmp_path: Path) -> None:
    development.ensure(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ca.crt", "tls.crt", "tls.key"]


def test_good_ones_are_used_again(tmp_path: Path) -> None:
    first = content(development.ensure(tmp_path, ["127.0.0.1"]))
    assert content(development.ensure(tmp_path, ["127.0.0.1"])) == first


@pytest.mark.parametrize("host", ["10.1.2.3", "gpu.example", "fd00::1"])
def test_another_host_makes_new_ones(tmp_path: Path, host: str) -> None:
    first = content(development.ensure(tmp_path))
    files = development.ensure(tmp_path, [host])
    assert content(files) != first
    assert host in addresses(files)


@pytest.mark.parametrize("damage", ["ca.crt", "tls.crt", "tls.key"])
@pytest.mark.parametrize("how", ["missing", "empty", "nonsense", "another's"])
def test_damaged_ones_are_made_anew(tmp_path: Path, damage: str, how: str) -> None:
    files = development.ensure(tmp_path)
    other = development.ensure(tmp_path / "other")
    broken = tmp_path / damage
    match how:
        case "missing":
            broken.unlink()
        case "empty":
            broken.write_bytes(b"")
        case "nonsense":
            broken.write_bytes(b"\xff-----BEGIN CERTIFICATE-----\nAAAA\n")
        case _:
            broken.write_bytes((other.cert.parent / damage).read_bytes())
    before = content(files) if how != "missing" else ()
    development.ensure(tmp_path)
    assert content(files) != before
    leaf(files).verify_directly_issued_by(x509.load_pem_x509_certificate(files.ca.read_bytes()))


def test_expired_ones_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(development, "VALID", -1.0)
    first = content(development.ensure(tmp_path))
    monkeypatch.undo()
    files = development.ensure(tmp_path)
    assert content(files) != first
    assert leaf(files).not_valid_after_utc > datetime.now(UTC)


def test_a_folder_that_cannot_be_made_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "certs").write_text("a file")
    with pytest.raises(InputError, match="cannot be written"):
        development.ensure(tmp_path / "certs")


def test_an_unspecified_address_is_a_name_like_any_other(tmp_path: Path) -> None:
    assert "::" in addresses(development.ensure(tmp_path, ["::"]))
