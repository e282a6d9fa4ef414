"""Start a Flower deployment on this machine (SuperLink, SuperNodes, certificates, keys), run the app, stop it all.

python deployment.py --nodes 6 --malicious 1 --secure --run-config 'defence="guard" num-server-rounds=3'
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

APP = Path(__file__).parent
COMMANDS = Path(sys.executable).parent
CONNECTION = "deployment"


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def make_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write a certificate authority, and a certificate of its for this machine; return ca, certificate and key."""
    authority_key, key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    authority_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "flower-mnist authority")])
    now = datetime.datetime.now(datetime.UTC)

    def signed(name: x509.Name, public: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(authority_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=authority,
                    crl_sign=authority,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        )
        if not authority:
            names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(authority_key, hashes.SHA384())

    machine = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    paths = folder / "ca.crt", folder / "server.pem", folder / "server.key"
    pem = serialization.Encoding.PEM
    paths[0].write_bytes(signed(authority_name, authority_key.public_key(), authority=True).public_bytes(pem))
    paths[1].write_bytes(signed(machine, key.public_key(), authority=False).public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths[2].touch(mode=0o600)
    paths[2].write_bytes(secret)
    return paths


def make_key(path: Path) -> Path:
    """Write a SuperNode's key pair in OpenSSH's format; return the path of the private key."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    )
    path.with_suffix(".pub").write_bytes(
        key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    return path


def descendants(process_id: int) -> list[int]:
    """Return the processes that a process started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found: list[int] = []
    waiting = [process_id]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


class Deployment:
    """A SuperLink and SuperNodes on loopback, each a process of its own, with a FLWR_HOME of their own.

    On leaving, everything that was started is stopped: SuperNodes first, then the SuperLink.
    """

    def __init__(self, folder: Path, *, nodes: int, secure: bool = False, database: Path | None = None) -> None:
        self.folder = folder
        self.nodes = nodes
        self.secure = secure
        self.database = database
        self.port, *self.node_ports = free_ports(nodes + 1)
        self.environment = {
            **os.environ,
            "FLWR_HOME": str(folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{COMMANDS}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        self.superlink: subprocess.Popen[bytes] | None = None
        self.started: set[int] = set()
        self.supernodes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Deployment:
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        connection = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "127.0.0.1:{self.port}"\n'
        )
        if self.secure:
            self.certificates = make_certificates(self.folder)
            connection += f'root-certificates = "{self.certificates[0]}"\n'
        else:
            connection += "insecure = true\n"
        (self.folder / "home" / "config.toml").write_text(connection, encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start_superlink(self) -> None:
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--disable-runtime-dependency-installation"]
        if self.secure:
            authority, certificate, key = map(str, self.certificates)
            options += ["--ssl-ca-certfile", authority, "--ssl-certfile", certificate, "--ssl-keyfile", key]
            options += ["--enable-supernode-auth"]
        else:
            options += ["--insecure"]
        if self.database is not None:
            options += ["--database", str(self.database)]
        self.superlink = self._start("superlink", "flower-superlink", *options)
        self._wait_for_port()

    def start_supernode(self, place: int, node_config: str = "", key: Path | None = None) -> None:
        """Start SuperNode `place`, from 0; `node_config` is added to its partition."""
        options = ["--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1"]
        options += ["--port", str(self.node_ports[place])]
        options += ["--node-config", f"partition-id={place} num-partitions={self.nodes} {node_config}".strip()]
        if self.secure:
            options += ["--root-certificates", str(self.certificates[0])]
        else:
            options += ["--insecure"]
        if key is not None:
            options += ["--auth-supernode-private-key", str(key)]
        self.supernodes[place] = self._start(f"supernode-{place}", "flower-supernode", *options)

    def register(self, key: Path, name: str) -> None:
        """Tell the SuperLink to accept the SuperNode of this key."""
        self.flwr("supernode", "register", str(key.with_suffix(".pub")), CONNECTION, "--name", name)

    def run(self, run_config: Mapping[str, object], timeout: float = 600) -> str:
        """Run the app to its end, and return its log."""
        return self.flwr("run", str(APP), CONNECTION, "--stream", *_run_config(run_config), timeout=timeout)

    def submit(self, run_config: Mapping[str, object]) -> str:
        """Start a run without waiting for it."""
        return self.flwr("run", str(APP), CONNECTION, *_run_config(run_config))

    def flwr(self, *arguments: str, timeout: float = 120) -> str:
        done = subprocess.run(
            [str(COMMANDS / "flwr"), *arguments],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"flwr {' '.join(arguments)} failed ({done.returncode}):\n{done.stdout}")
        return done.stdout

    def show(self, *arguments: str) -> None:
        """Call flwr and print its lines as they come."""
        command = [str(COMMANDS / "flwr"), *arguments]
        with subprocess.Popen(
            command,
            env={**self.environment, "PYTHONUNBUFFERED": "1"},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
        if process.returncode:
            raise RuntimeError(f"flwr {' '.join(arguments)} failed ({process.returncode})")

    def kill_supernode(self, place: int) -> None:
        """End a SuperNode and what it started at once, as a power cut would."""
        process = self.supernodes.pop(place)
        for process_id in [*descendants(process.pid), process.pid]:
            _signal(process_id, signal.SIGKILL)
        process.wait()

    def stop_superlink(self) -> None:
        assert self.superlink is not None
        self._end([self.superlink])
        self.superlink = None

    def stop(self) -> None:
        """Stop SuperNodes, then the SuperLink, then whatever they left."""
        self._end(list(self.supernodes.values()))
        self.supernodes.clear()
        if self.superlink is not None:
            self.stop_superlink()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def _start(self, name: str, command: str, *options: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(COMMANDS / command), *options],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.started.add(process.pid)
        return process

    def _end(self, processes: list[subprocess.Popen[bytes]]) -> None:
        children = [child for process in processes for child in descendants(process.pid)]
        self.started.update(children)
        for process in processes:
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        for process in processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for child in children:
            _signal(child, signal.SIGKILL)

    def _wait_for_port(self, timeout: float = 90) -> None:
        assert self.superlink is not None
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.superlink.poll() is not None:
                raise RuntimeError(f"the SuperLink ended at once:\n{self.log('superlink')}")
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise TimeoutError(f"no SuperLink on port {self.port} after {timeout:.0f} s:\n{self.log('superlink')}")


def _signal(process_id: int, what: signal.Signals) -> None:
    try:
        os.kill(process_id, what)
    except ProcessLookupError:  # it has ended by itself
        return


def _run_config(run_config: Mapping[str, object]) -> list[str]:
    def toml(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)

    pairs = " ".join(f"{key}={toml(value)}" for key, value in run_config.items())
    return ["--run-config", pairs] if pairs else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--malicious", type=int, default=1, help="how many of them lie")
    parser.add_argument("--secure", action="store_true", help="TLS, and SuperNodes that authenticate themselves")
    parser.add_argument("--run-config", default="", help="as for `flwr run`")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="flower-mnist-") as folder,
        Deployment(Path(folder), nodes=arguments.nodes, secure=arguments.secure) as deployment,
    ):
        print("starting the SuperLink", flush=True)
        deployment.start_superlink()
        for place in range(arguments.nodes):
            liar = " (it lies)" if place < arguments.malicious else ""
            print(f"starting SuperNode {place + 1} of {arguments.nodes}{liar}", flush=True)
            key = None
            if arguments.secure:
                key = make_key(Path(folder) / f"node-{place}")
                deployment.register(key, f"node-{place}")
            deployment.start_supernode(place, "malicious=true" if place < arguments.malicious else "", key)
        options = ["--run-config", arguments.run_config] if arguments.run_config else []
        print("running the app; its first lines come when the SuperNodes are connected", flush=True)
        deployment.show("run", str(APP), CONNECTION, "--stream", *options)


if __name__ == "__main__":
    main()
