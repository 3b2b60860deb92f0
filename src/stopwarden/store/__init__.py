"""Durable state: one interface (`port`), two stores, and the marker beside them."""

import _collections_abc
import sys

# apsw asks for `collections.abc` alone. Told where it is, as `collections` itself does, it does not
# load the rest of `collections`: a third of an interpreter's start.
sys.modules.setdefault("collections.abc", _collections_abc)
