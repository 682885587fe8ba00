"""Tables of the versions of definitions, and of the operations of users."""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from falcon_assets.history.tables.ledger_schema import INSTANT, METADATA

DEFINITION_VERSIONS = Table(
    "definition_versions",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="from 1"),
    Column("text", Text, comment="as it is stored, with stars for secrets; null: the entity was deleted"),
    Column("text_hash", Text, comment="SHA-256 of the text"),
    Column("workflow_hash", Text, comment="SHA-256 of the files of its workflows; null: it has none"),
    Column("since", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("operation", Text, nullable=False, comment="the command, or load"),
    Column("actor", Text, nullable=False, comment="the user of the operating system"),
    Column("reason", Text, nullable=False, comment="in the words of who gave the command"),
)
"""Every definition that an entity ever had."""

DEFINITION_TREES = Table(
    "definition_trees",
    METADATA,
    Column("root", Text, primary_key=True, comment="the folder of the definitions"),
    Column("fingerprint", Text, nullable=False, comment="of definitions and workflow files, without secrets"),
    Column("workflows", JSON, nullable=False, comment="the workflow files, relative to the folder"),
    Column("entities", JSON, nullable=False, comment="kind and name of each entity"),
)
"""Trees whose versions are recorded: loading the same tree again compares one fingerprint."""

WORKFLOW_FILES = Table(
    "workflow_files",
    METADATA,
    Column("process", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False, comment="of its definition"),
    Column("path", Text, primary_key=True, comment="relative to the folder of the definitions"),
    Column("hash", Text, comment="SHA-256 of the content; null: it was not kept"),
    Column("problem", Text, nullable=False, comment="why it was not kept"),
)

FILE_CONTENTS = Table(
    "file_contents",
    METADATA,
    Column("hash", Text, primary_key=True, comment="SHA-256 of the whole content"),
    Column("number", Integer, primary_key=True, autoincrement=False, comment="of the part, from 0"),
    Column("data", LargeBinary, nullable=False),
)
"""The contents of these files, each once, in parts that fit into memory."""

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", BigInteger, primary_key=True),
    Column("at", INSTANT, nullable=False, comment="on the falcon clock"),
    Column("recorded", INSTANT, nullable=False, comment="in real time"),
    Column("principal", Text, nullable=False, comment="who asked"),
    Column("os_user", Text, nullable=False, comment="the user of the process that did it"),
    Column("way", Text, nullable=False, comment="cli, api or job"),
    Column("operation", Text, nullable=False),
    Column("entities", JSONB, nullable=False, comment="kind and name of each that it was about"),
    Column("instances", Integer, comment="how many it was about; null: it was about entities"),
    Column("first", INSTANT, comment="of the instances"),
    Column("last", INSTANT, comment="of the instances"),
    Column("reason", Text, nullable=False, comment="in the words of who asked"),
    Column("result", Text, nullable=False, comment="done, unchanged, denied or failed"),
    Column("message", Text, nullable=False, comment="why it was denied or failed"),
)

ANSWERED_REQUESTS = Table(
    "answered_requests",
    METADATA,
    Column("principal", Text, primary_key=True),
    Column("key", Text, primary_key=True, comment="Idempotency-Key of the request"),
    Column("request", Text, nullable=False, comment="SHA-256 of method, path, query and body"),
    Column("begun", INSTANT, nullable=False, comment="in real time"),
    Column("status", Integer, comment="of the answer; null: it is under way"),
    Column("headers", JSON, comment="of the answer"),
    Column("body", LargeBinary, comment="of the answer"),
    Index("answered_requests_begun", "begun"),
)
"""Answers to requests over HTTP, by the keys that clients give them."""
