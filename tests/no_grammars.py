"""Keep jsonschema from importing rfc3987_syntax, which builds a grammar of internationalized addresses.

`make test` names it with -p, before plugins are loaded, of which nbval's imports jsonschema: in each worker, too.
"""

from __future__ import annotations

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
