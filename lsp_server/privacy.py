"""Which documents stay away from the engine: secrets, files too big or too dense to help with, and, where the engine
is a remote one, those outside the folders it may see.

Judges by name and size alone; reads nothing from disk but where links lead, and logs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

from lsp_server.document import Document
from lsp_server.remote.allowed import may_leave
from lsp_server.settings import Settings
from lsp_server.uris import parts_of

Refusal = Literal["secret", "huge", "dense", "elsewhere", "file off", "language off"]

# A pattern with a slash is matched against the end of the path, one without against the file's name.
SECRET_PATTERNS = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".dev.vars",
    ".dev.vars.*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.asc",
    "*.tfvars",
    "*.tfstate",
    "secret.y*ml",
    "secrets.y*ml",
    "secrets.json",
    "secrets.toml",
    "credentials.json",
    "service-account*.json",
    "master.key",
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    ".ssh/*",
    ".gnupg/*",
)

HUGE_CHARS = 10_000_000
# The mean length of a line says little about a short text, and much about a minified or generated one.
DENSE_FROM_CHARS = 20_000
DENSE_MEAN_LINE_CHARS = 240


def explained(refused: Refusal) -> str:
    """What a person is told who asks for something in a file that the engine is not asked about: the true reason."""
    reason = {
        "secret": "its name looks like that of a secret; see `privacy.secretFiles` and `privacy.openFiles`",
        "huge": f"it is longer than {HUGE_CHARS:,} characters",
        "dense": f"its lines are longer than {DENSE_MEAN_LINE_CHARS} characters on average, as in generated text",
        "elsewhere": "it lies outside the folders in `engine.allowFolders`, and nothing else is sent to `engine.url`",
    }.get(refused, "it is turned off in the settings")
    return f"Lacuna: this file is not given to the engine ({reason})."


def is_secret(uri: str, settings: Settings) -> bool:
    """Whether the file's name says that its text must not reach the engine. The user's patterns go first."""
    path = _path(uri)
    if _matches(path, settings.secret_files):
        return True
    return _matches(path, SECRET_PATTERNS) and not _matches(path, settings.open_files)


def is_open(uri: str, settings: Settings) -> bool:
    """Whether the user said that the file may be shown whatever its name or git says."""
    path = _path(uri)
    return _matches(path, settings.open_files) and not _matches(path, settings.secret_files)


def refusal(document: Document, settings: Settings) -> Refusal | None:
    """Why nothing may be asked of the engine about `document` at all, None when it may."""
    if is_secret(document.uri, settings):
        return "secret"
    if document.length > HUGE_CHARS:
        return "huge"
    if _is_dense(document):
        return "dense"
    return None if may_leave(document.uri, settings) else "elsewhere"


def typing_refusal(document: Document, settings: Settings) -> Refusal | None:
    """Why nothing is suggested while typing: the above, or the user turned the language or file off."""
    if document.language in settings.disabled_languages:
        return "language off"
    if _matches(_path(document.uri), settings.disabled_files):
        return "file off"
    return refusal(document, settings)


def _is_dense(document: Document) -> bool:
    """Asked with every key, so it takes the counts that are there and joins no text."""
    if document.length < DENSE_FROM_CHARS:
        return False
    return document.length > document.index.line_count * DENSE_MEAN_LINE_CHARS


def _path(uri: str) -> str:
    """The path of a URI, lower case with forward slashes; `untitled:` and cell URIs have one too."""
    return parts_of(uri).path.lower()


def _matches(path: str, patterns: Iterable[str]) -> bool:
    name = path.rsplit("/", 1)[-1]
    for pattern in patterns:
        wanted = pattern.lower()
        if "/" not in wanted:
            if fnmatchcase(name, wanted):
                return True
            continue
        # `fnmatchcase` lets a star cross slashes, which is what "anywhere below" needs; `**/` may also be no folder.
        below = wanted.lstrip("/")
        if any(fnmatchcase(path, f"*/{each}") for each in (below, below.replace("**/", ""))):
            return True
    return False
