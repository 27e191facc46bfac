"""Facts from what people have already: outputs of nvidia-smi, pip and torch, in place of a look at the host.

`import_reports` recognises them by content and joins them into one facts document; `redact` takes out who and where.
"""

from remediate.importing.join import Imported, import_reports
from remediate.importing.redact import Redaction, redact

__all__ = ["Imported", "Redaction", "import_reports", "redact"]
