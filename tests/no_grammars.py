"""Keeps jsonschema from a package that it takes where it is there: its import builds the grammar of internationalized
addresses, for longer than all else that a notebook's test imports. No schema here has such an address.

`make test` names it with -p, before plugins are loaded, of which nbval's imports jsonschema: in each worker, too.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
