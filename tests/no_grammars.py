"""Keep jsonschema from importing rfc3987_syntax, which slowly builds a grammar of internationalized addresses.

`make test` loads this plugin with -p in pytest and in each worker, before nbval's plugin imports jsonschema.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
