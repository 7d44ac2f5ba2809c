"""TLS from options of an address: `tls=yes`, `ca`, `cert` and `key` (files)."""

from __future__ import annotations

import ssl

from hustings.core.errors import BadInput
from hustings.guard.options import one_of
from hustings.guard.urls import GuardUrl

OPTIONS = ("tls", "ca", "cert", "key")


def client_tls(url: GuardUrl) -> ssl.SSLContext | None:
    """How to speak with a server, or None for plain text; certificates are always verified."""
    ca, cert, key = (url.options.get(each) for each in ("ca", "cert", "key"))
    if one_of(url, "tls", "no", "yes") == "no":
        if ca or cert or key:
            raise BadInput(f"options ca, cert and key of {url.scheme} need tls=yes")
        return None
    if key and not cert:
        raise BadInput(f"option key of {url.scheme} needs cert")
    try:
        context = ssl.create_default_context(cafile=ca)
        if cert is not None:
            context.load_cert_chain(cert, key)
    except OSError as error:
        raise BadInput(f"options ca, cert and key of {url.scheme}: {error}") from None
    return context
