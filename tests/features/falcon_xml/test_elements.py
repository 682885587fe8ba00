"""Elements know their lines and comments; hostile XML is refused, at once."""

from __future__ import annotations

import tracemalloc

import pytest

from falcon_assets.features.falcon_xml.elements import MAX_DEPTH, MAX_ELEMENTS, UnfitXmlError, parse_xml

BILLION = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>\n<feed>&j;</feed>"
)


def refused(raw: bytes | str) -> UnfitXmlError:
    with pytest.raises(UnfitXmlError) as caught:
        parse_xml(raw.encode() if isinstance(raw, str) else raw)
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        BILLION,
        '<!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed>&x;</feed>',
        '<!DOCTYPE feed SYSTEM "http://127.0.0.1:9/x.dtd"><feed/>',
        '<!DOCTYPE feed [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]><feed/>',
        '<!DOCTYPE feed [<!ATTLIST feed name CDATA "x">]><feed/>',
    ],
    ids=["billion laughs", "a file", "a DTD of the network", "a parameter entity", "defaults of attributes"],
)
def test_a_doctype_is_refused_before_it_is_read(text: str) -> None:
    tracemalloc.start()
    error = refused(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(error).startswith("a DOCTYPE is not read, as it may hide entities that grow without end")
    assert error.line == 1
    assert peak < 1_000_000


def test_a_doctype_in_another_encoding_is_refused() -> None:
    assert "DOCTYPE" in str(refused(BILLION.encode("utf-16")))


def test_too_deep() -> None:
    error = refused("\n".join(["<a>"] * 500_00))
    assert (str(error), error.line) == (f"elements are more than {MAX_DEPTH} deep in each other", MAX_DEPTH + 1)


def test_too_many_elements() -> None:
    assert str(refused(f"<a>{'<b/>' * MAX_ELEMENTS}</a>")).startswith("the file has more than 20,000 elements")


@pytest.mark.parametrize(
    "text, line, why",
    [
        ("<a>\n<b>\n</a>", 3, "mismatched tag at column 3"),
        ("", 1, "no element found at column 1"),
        ("<a>\n&x;</a>", 2, "undefined entity at column 1"),
        ("<a x='1' x='2'/>", 1, "duplicate attribute"),
        ("<a>\n\x01</a>", 2, "invalid token"),
        ("<p:a/>", 1, "unbound prefix"),
    ],
)
def test_what_is_not_well_formed_is_said_with_its_line(text: str, line: int, why: str) -> None:
    error = refused(text)
    assert error.line == line
    assert str(error).startswith("the XML is not well-formed: ")
    assert why in str(error)


@pytest.mark.parametrize("raw", [b'<?xml version="1.0" encoding="klingon"?><a/>', b"<a>\xff</a>", b"\xfe\xff\x00"])
def test_bytes_that_are_no_text(raw: bytes) -> None:
    assert refused(raw).line == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n<feed name="für"/>'
    root = parse_xml(text.encode(encoding)).root
    assert [(one.name, one.value) for one in root.attributes] == [("name", "für")]


def test_lines_of_tags_and_of_attributes_in_long_tags() -> None:
    root = parse_xml(
        b'<feed name="a=b>"\n  xmlns="urn:x"\n  description="x\n  version=y"\n  version="1">\n\n<b c="d"/>\n</feed>'
    ).root
    assert [(one.name, one.line) for one in root.attributes] == [("name", 1), ("description", 3), ("version", 4)]
    assert root.children[0].line == 7


def test_comments_belong_to_what_follows() -> None:
    root = parse_xml(b"<!-- top --><a><!-- one --><b/><!-- two --><!-- three --><c/><!-- last --></a><!-- end -->").root
    assert root.comments == [" top "]
    assert [one.comments for one in root.children] == [[" one "], [" two ", " three "]]
    assert root.last_comments == [" last ", " end "]
    assert root.claim_comments() == [" top ", " last ", " end "]
    assert root.claim_comments() == []


def test_other_namespaces_are_other_names() -> None:
    root = parse_xml(b'<f:feed xmlns:f="uri:falcon:feed:0.1" xmlns:x="urn:x"><f:a x:b="1"/><x:a/></f:feed>').root
    assert (root.name, root.namespace) == ("feed", "uri:falcon:feed:0.1")
    assert [one.name for one in root.children] == ["a", "{urn:x}a"]
    assert root.children[0].attributes[0].name == "{urn:x}b"
