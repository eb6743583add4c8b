"""Reasons why pip or uv failed, from their output, and the remedies."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The first matching pattern applies, so the list has causes before their consequences.
_REASONS = [
    (
        r"No space left on device|Errno 28\b|Disk quota exceeded|Errno 122\b",
        "The disk is full.",
        "Free some space (`df -h .` shows how much there is), then run `make` again.",
    ),
    (
        r"MemoryError|Cannot allocate memory|was ended by SIGKILL",
        "There was not enough memory, or another process stopped the installation.",
        "Close other programs, then run `make` again.",
    ),
    (
        r"ProxyError|Cannot connect to proxy|Tunnel connection failed|407 Proxy|proxy authentication|InvalidProxyURL",
        "The proxy did not let the download through.",
        "Check the variables https_proxy and no_proxy, or run make PIP_FLAGS='--proxy ADDRESS'.",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLCertVerificationError|invalid peer certificate|UnknownIssuer",
        "The download's certificate is not trusted here; a proxy may be inspecting the traffic.",
        "Run make PIP_FLAGS='--cert FILE' with your network's certificate (with TORCH=..., set SSL_CERT_FILE as well).",
    ),
    (
        r"DO NOT MATCH THE HASHES|Hash mismatch|BadZipFile|is not a valid wheel|has an invalid wheel",
        "A downloaded file is damaged.",
        "Run make PIP_FLAGS=--no-cache-dir, which downloads it again.",
    ),
    (
        r"Permission denied|Errno 13\b|Read-only file system|Errno 30\b",
        "A file could not be written.",
        "Check who owns the folder named above, then run `make` again.",
    ),
    (
        r"name resolution|Name or service not known|nodename nor servname|dns error|getaddrinfo failed"
        r"|NewConnectionError|Failed to establish a new connection|Network is unreachable|No route to host"
        r"|Connection refused|Connection reset|Max retries exceeded|timed out|TimeoutError|IncompleteRead"
        r"|Connection broken|RemoteDisconnected|error sending request|tcp connect error|IncompleteDownload"
        r"|incomplete-download",
        "The package index could not be reached, or the connection was lost.",
        "Check the network, then run `make` again.",
    ),
    (
        r"ResolutionImpossible|conflicting dependencies|No solution found|The user requested|\S depends on ",
        "Packages require incompatible versions.",
        "If you changed pyproject.toml or constraints.txt, check the change; otherwise report this with the log.",
    ),
    (
        r"requires a different Python|require a different python version|Requires-Python",
        "A package does not support this version of Python.",
        "Choose another Python: make PYTHON=python3.12.",
    ),
    (
        r"invalid value '[^']*' for '--torch-backend",
        "There is no such build of torch.",
        "Set TORCH to cpu, to a name such as cu126 from the list in the error, or to pip, which lets pip choose.",
    ),
    (
        r"No matching distribution found|not a supported wheel",
        "A package has no build for this Python and this machine.",
        "The course runs on 64-bit Linux with glibc 2.28 or newer; choose another Python with make PYTHON=python3.12.",
    ),
    (
        r"Failed building|subprocess-exited-with-error|Failed to build|metadata-generation-failed",
        "A package has no wheel for this Python and this machine, and could not be built here.",
        "Choose another Python: make PYTHON=python3.12.",
    ),
]
_MOST_LINES = 4
_MOST_LETTERS = 300
_ERROR = re.compile(r"(ERROR|error|Error|[\w.]*Error|cause)\b.*:")
# Matches the text before and after the reason in pip's message about a retry, which is removed.
_AROUND = re.compile(r"^WARNING: Retrying .* after connection broken by |<pip\._vendor\S+ object at 0x\w+>: ")
# Warnings of pip that are irrelevant: missing package folders, and its own version.
_NOISE = re.compile(r"^WARNING: Location |^\[notice\]")


@dataclass
class Failure(Exception):
    """A failed step of the set-up. ``changed``: True if it may have changed installed packages."""

    title: str
    lines: list[str]
    reason: str = ""
    advice: str = ""
    changed: bool = True

    def __str__(self) -> str:
        said = [f"make: {self.title}", *(f"    {line}" for line in self.lines)]
        return "\n".join(said + [text for text in (self.reason, self.advice) if text])


def refusal(title: str, advice: str, *lines: str) -> Failure:
    """Return the failure of a condition that is checked before anything changes."""
    return Failure(title, [*lines], advice=advice, changed=False)


def explained(title: str, output: list[str], changed: bool) -> Failure:
    """Return the failure of a program: the relevant lines of its ``output``, and the reason if known."""
    output = [line.strip() for line in output if line.strip() and not _NOISE.search(line)]
    for pattern, reason, advice in _REASONS:
        telling = [line for line in output if re.search(pattern, line, re.IGNORECASE)]
        if telling:
            return Failure(title, _short(telling), reason, advice, changed)
    return Failure(title, _short([line for line in output if _ERROR.match(line)] or output), changed=changed)


def _short(lines: list[str]) -> list[str]:
    lines = list(dict.fromkeys(_AROUND.sub("", line) for line in lines))[-_MOST_LINES:]
    return [line if len(line) <= _MOST_LETTERS else line[: _MOST_LETTERS - 3] + "..." for line in lines]
