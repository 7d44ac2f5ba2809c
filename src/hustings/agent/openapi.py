"""The OpenAPI document: the agent's requests and answers, in a form that tools read.

It is written by hand. A test compares it with the running application.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hustings._version import __version__

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_FLAG: Json = {"type": "boolean"}
_COUNT: Json = {"type": "integer", "minimum": 0}


def document(groups: Iterable[str]) -> Json:
    """The whole document, for an agent with members in these groups."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hustings agent",
            "version": __version__,
            "summary": "Who leads each group, and orders to the members of this agent.",
        },
        "paths": {**_asking(), **_ordering(), **_watching()},
        "components": {
            "schemas": _schemas(),
            "parameters": {
                "group": {
                    "name": "group",
                    "in": "path",
                    "required": True,
                    "description": "A group that this agent has a member in.",
                    "schema": {**_TEXT, "enum": list(groups)},
                }
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token that the agent was started with.",
                }
            },
        },
    }


def _object(**properties: Json) -> Json:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _maybe(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def _schemas() -> Json:
    return {
        "Error": _object(error={**_TEXT, "description": "One sentence."}),
        "Peer": _object(
            name=_TEXT,
            id={"type": "string", "pattern": "^[0-9]+$"},
            address=_TEXT,
            attributes={"type": "object", "additionalProperties": {"type": "number"}},
            incarnation=_COUNT,
            observer=_FLAG,
            me={**_FLAG, "description": "Whether it is this agent's own member."},
            leader=_FLAG,
        ),
        "Leadership": _object(
            group=_TEXT,
            term=_COUNT,
            leader=_maybe(_ref("Peer")),
            leaders=_list(_ref("Peer")),
            leading={**_FLAG, "description": "Whether this agent's own member leads."},
            reason={**_TEXT, "description": "Why nobody leads; else empty."},
            risk=_maybe({"type": "number"}),
            token=_maybe({"type": "integer"}),
        ),
        "Group": _object(
            group=_TEXT,
            member=_TEXT,
            address=_TEXT,
            term=_COUNT,
            leader=_maybe(_TEXT),
            leading=_FLAG,
            members=_COUNT,
        ),
        "Groups": _object(groups=_list(_ref("Group"))),
        "Members": _object(group=_TEXT, members=_list(_ref("Peer"))),
        "IsLeader": _object(group=_TEXT, member=_TEXT, leading=_FLAG, term=_COUNT),
        "Health": _object(healthy=_FLAG, ended=_list(_TEXT)),
        "Readiness": _object(ready=_FLAG, groups={"type": "object", "additionalProperties": _FLAG}),
        "Transfer": _transfer_schema(),
    }


def _transfer_schema() -> Json:
    return {
        "type": "object",
        "properties": {
            "to": {"type": "string", "minLength": 1, "maxLength": 256},
            "drain": {
                "description": "How long what runs may take to finish, in seconds.",
                "type": "number",
                "minimum": 0,
                "maximum": 3600,
            },
        },
        "required": ["to"],
        "additionalProperties": False,
    }


def _json(description: str, schema: str) -> Json:
    return {"description": description, "content": {"application/json": {"schema": _ref(schema)}}}


def _get(name: str, summary: str, responses: Json, parameters: list[Json] | None = None) -> Json:
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            "parameters": parameters or [],
            "responses": {**responses, **_OTHER_NAME},
        }
    }


_OTHER_NAME: Json = {"421": _json("The Host header names something else.", "Error")}
_GROUP: Json = {"$ref": "#/components/parameters/group"}


def _asking() -> Json:
    unknown = {"404": _json("This agent has no member in the group.", "Error")}
    return {
        "/v1/groups": _get(
            "groups", "All groups of this agent", {"200": _json("The groups.", "Groups")}
        ),
        "/v1/groups/{group}/leader": _get(
            "leader",
            "Who leads",
            {
                "200": _json("There is a leader.", "Leadership"),
                "503": _json("There is none; `reason` says why.", "Leadership"),
                **unknown,
            },
            [_GROUP],
        ),
        "/v1/groups/{group}/members": _get(
            "members",
            "Who is in the group, as far as this agent's member knows",
            {"200": _json("The members, sorted by name.", "Members"), **unknown},
            [_GROUP],
        ),
        "/v1/groups/{group}/is-leader": _get(
            "is-leader",
            "Whether this agent's member leads: for load balancers",
            {
                "200": _json("It leads.", "IsLeader"),
                "503": _json("It does not.", "IsLeader"),
                **unknown,
            },
            [_GROUP],
        ),
    }


def _ordering() -> Json:
    summaries = {
        "elect": "Call an election",
        "resign": "Step down and stand back, until told to stand again",
        "stand": "Be eligible again after a resignation",
        "transfer": "Hand over to a named member; only the leader can",
    }
    return {f"/v1/groups/{{group}}/{order}": _order(order, summaries[order]) for order in summaries}


def _order(name: str, summary: str) -> Json:
    order: Json = {
        "operationId": name,
        "summary": summary,
        "parameters": [_GROUP],
        "security": [{"token": []}],
        "responses": {
            "200": _json("Done; this is how things are now.", "Leadership"),
            **_OTHER_NAME,
            "400": _json("The body is not understood.", "Error"),
            "408": _json("The body did not arrive in time.", "Error"),
            "401": _json("The token is missing or wrong.", "Error"),
            "403": _json("The agent has no token and takes no orders.", "Error"),
            "404": _json("This agent has no member in the group.", "Error"),
            "409": _json("The group is not in a state for that; nothing was done.", "Error"),
            "413": _json("The body is too large.", "Error"),
            "503": _json("The member is not able to do it now.", "Error"),
            "504": _json("It was begun, and its end did not come in time.", "Error"),
        },
    }
    if name == "transfer":
        body = {"application/json": {"schema": _ref("Transfer")}}
        order["requestBody"] = {"required": True, "content": body}
    return {"post": order}


def _watching() -> Json:
    only = {
        "name": "group",
        "in": "query",
        "required": False,
        "description": "Only this group; else all.",
        "schema": {"$ref": "#/components/parameters/group/schema"},
    }
    stream = {
        "description": "Events `leadership`, each with a Leadership and its `time` as data: the "
        "present state first, then each change; `missed` tells a slow reader how many it missed.",
        "content": {"text/event-stream": {}},  # no schema: the stream has no end
    }
    page = {"description": "Prometheus text.", "content": {"text/plain": {"schema": _TEXT}}}
    return {
        "/v1/events": _get(
            "events",
            "Changes of leadership, as server-sent events",
            {
                "200": stream,
                "404": _json("This agent has no member in the group.", "Error"),
                "503": _json("As many listen as may.", "Error"),
            },
            [only],
        ),
        "/metrics": _get("metrics", "Numbers for Prometheus", {"200": page}),
        "/healthz": _get(
            "healthz",
            "Whether all members run",
            {"200": _json("They do.", "Health"), "503": _json("Some have ended.", "Health")},
        ),
        "/readyz": _get(
            "readyz",
            "Whether every member has found its place in its group once",
            {"200": _json("Yes.", "Readiness"), "503": _json("Not yet.", "Readiness")},
        ),
        "/openapi.json": _get(
            "openapi",
            "This document",
            {
                "200": {
                    "description": "OpenAPI 3.1.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                }
            },
        ),
    }
