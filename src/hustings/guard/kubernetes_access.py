"""Which server of Kubernetes an address means, and how it is entered."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kubernetes_asyncio import config

from hustings.core.errors import BadInput
from hustings.guard.options import one_of
from hustings.guard.urls import GuardUrl

PORT = 6443
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

# Fills in a client's settings, and says the namespace if it knows one.
Configure = Callable[[Any], Awaitable[str | None]]


def access(url: GuardUrl) -> Configure:
    """The server that the address names, or the one that is known here."""
    if len(url.hosts) > 1 or url.user is not None:
        raise BadInput("kubernetes takes one host, and a token as kubernetes://:token@host")
    if url.hosts:
        return _given(url)
    for option in ("ca", "tls"):
        if option in url.options:
            raise BadInput(f"option {option} of kubernetes needs a host")
    return _found(url)


def _given(url: GuardUrl) -> Configure:
    """The server that the address names."""
    for option in ("kubeconfig", "context"):
        if option in url.options:
            raise BadInput(f"option {option} of kubernetes is for an address without a host")
    ((host, port),) = url.addresses(PORT)
    scheme = "https" if one_of(url, "tls", "yes", "no") == "yes" else "http"
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def configure(settings: Any) -> str | None:
        settings.host = f"{scheme}://{place}"
        settings.ssl_ca_cert = url.options.get("ca")
        if url.password is not None:
            settings.api_key = {"BearerToken": url.password}
            settings.api_key_prefix = {"BearerToken": "Bearer"}
        return None

    return configure


def _found(url: GuardUrl) -> Configure:
    """The server of the cluster this runs in, or of the file that kubectl reads."""
    file, context = url.options.get("kubeconfig"), url.options.get("context")

    async def configure(settings: Any) -> str | None:
        try:
            if file is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
                load: Any = config.load_incluster_config
                load(client_configuration=settings)
                return NAMESPACE_FILE.read_text().strip() if NAMESPACE_FILE.exists() else None
            await config.load_kube_config(
                config_file=file, context=context, client_configuration=settings
            )
        except (config.ConfigException, OSError, ValueError) as error:
            raise BadInput(f"kubernetes: no server is known: {error}") from None
        return None

    return configure
