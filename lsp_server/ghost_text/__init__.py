"""An engine's raw text, turned into what is shown at the cursor: one rule a file, `present` runs them.

Owns the kinds of fault engines make (indentation counted twice, text that is already there, loops, text beyond the
scope) and their repair. Pure: no protocol library, no clock, no document versions.
"""

from lsp_server.ghost_text.present import GhostText, present, present_in

__all__ = ["GhostText", "present", "present_in"]
