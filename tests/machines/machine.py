"""A fresh Debian in a folder, entered with chroot in separate namespaces."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Network settings of the host that a created machine needs to reach package servers.
_NETWORK = re.compile(
    r"PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT|CONFIG_FILE)|SSL_CERT_\w+|(https?|no)_proxy", re.I
)
_SYSTEM_FILES = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
_PIP_CACHE = "/var/cache/pip"
_USER_ID = 1000


class MachineError(Exception):
    """An error that prevents the creation of a machine. The message says why and what to do."""


@dataclass(frozen=True)
class Description:
    """The properties of one machine: an entry of machines.toml."""

    name: str
    suite: str
    packages: tuple[str, ...]
    user: str
    folder: str
    source: str
    home: str
    run: tuple[str, ...]
    locale: str = ""

    @property
    def home_folder(self) -> str:
        return "/root" if self.user == "root" else f"/home/{self.user}"


class Images:
    """Fresh Debian images, created once for each release and list of packages, and never changed."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0:
            raise MachineError("only root can make machines: run this with sudo")
        for tool in ("debootstrap", "unshare", "mount"):
            if shutil.which(tool) is None:
                raise MachineError(f"{tool} is missing (Debian, Ubuntu: apt install debootstrap util-linux mount)")
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, suite: str, packages: Sequence[str]) -> Path:
        """Return the folder of an image."""
        wanted = sorted({"ca-certificates", *packages})
        image = self.folder / f"{suite}-{hashlib.sha256(' '.join(wanted).encode()).hexdigest()[:8]}"
        if image.is_dir():
            return image
        making = image.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        argv = ["debootstrap", "--variant=minbase", f"--include={','.join(wanted)}", suite, str(making), _mirror()]
        log = image.with_suffix(".log")
        with log.open("w") as output:
            done = subprocess.run(argv, stdout=output, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise MachineError(f"debootstrap {suite} failed: see {log}")
        making.rename(image)
        return image


class Machine:
    """A machine: a writable overlay over an image, with the course in it."""

    def __init__(self, description: Description, image: Path, folder: Path, pip_cache: Path) -> None:
        self.description = description
        self._image = image
        self._layer, self._work, self.root = folder / "layer", folder / "work", folder / "root"
        self._pip_cache = pip_cache
        for place in (self._layer, self._work, self.root, pip_cache):
            place.mkdir(parents=True, exist_ok=True)
        self._prepare()

    def command(self, shell: str, **environment: str) -> list[str]:
        """Return the command that runs a shell command in the course's folder, as the machine's user."""
        d = self.description
        variables = {name: value for name, value in os.environ.items() if _NETWORK.fullmatch(name)}
        variables |= {"HOME": d.home_folder, "PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_CACHE_DIR": _PIP_CACHE}
        variables |= {"TERM": "dumb", **({"LC_ALL": d.locale} if d.locale else {}), **environment}
        words = [f"{name}={_quoted(value)}" for name, value in variables.items()]
        user = 0 if d.user == "root" else _USER_ID
        inner = f"cd {_quoted(d.folder)} && {shell}"
        root = _quoted(str(self.root))
        script = "\n".join(
            [
                "set -e",
                f"mount -t overlay overlay -o lowerdir={self._image},upperdir={self._layer},workdir={self._work} "
                f"{root}",
                f"mount -t proc proc {root}/proc",
                f"mount --rbind /dev {root}/dev",
                f"mount --bind {self._pip_cache} {root}{_PIP_CACHE}",
                f"exec chroot --userspec={user}:{user} {root} /usr/bin/env -i {' '.join(words)} /bin/bash -c "
                f"{_quoted(inner)}",
            ]
        )
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", script]

    def remove(self) -> None:
        """Free the disk space."""
        shutil.rmtree(self.root.parent, ignore_errors=True)

    def _prepare(self) -> None:
        """Write the user, the network settings and the course into the layer."""
        d, owner = self.description, 0 if self.description.user == "root" else _USER_ID
        for name in _SYSTEM_FILES:
            if Path(name).is_file():
                self._write(name, Path(name).read_bytes())
        if owner:
            for name, line in (
                ("/etc/passwd", f"{d.user}:x:{owner}:{owner}::{d.home_folder}:/bin/bash\n"),
                ("/etc/group", f"{d.user}:x:{owner}:\n"),
            ):
                self._write(name, (self._image / name[1:]).read_bytes() + line.encode())
        self._inside(_PIP_CACHE).mkdir(parents=True, exist_ok=True)
        subprocess.run(["chown", "-R", f"{owner}:{owner}", str(self._pip_cache)], check=True)
        home, course = self._inside(d.home_folder), self._inside(d.folder)
        home.mkdir(parents=True, exist_ok=True)
        course.parent.mkdir(parents=True, exist_ok=True)
        if d.source == "clone":
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(course)], check=True)
        else:
            course.mkdir()
            archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], stdout=subprocess.PIPE, check=True)
            subprocess.run(["tar", "-x", "-C", str(course)], input=archive.stdout, check=True)
        for place in {home, course}:
            subprocess.run(["chown", "-R", f"{owner}:{owner}", str(place)], check=True)
        if d.home == "read-only":
            os.chown(home, 0, 0)
            home.chmod(0o555)

    def _inside(self, path: str) -> Path:
        return self._layer / path.removeprefix("/")

    def _write(self, path: str, content: bytes) -> None:
        place = self._inside(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _mirror() -> str:
    """Return the Debian mirror that the host uses."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for file in files:
        found = re.search(r"https?://\S+/(debian|ubuntu)/?(?=\s|$)", file.read_text() if file.is_file() else "")
        if found:
            return found.group()
    raise MachineError("the host's package sources (/etc/apt) contain no Debian mirror")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
