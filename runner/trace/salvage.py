"""A damaged chunk of a trace's events -> the events that can be read, what was mended, and where the rest was lost.

A chunk is what stands between two events of the array: `{...}, {...}, {...}`, without outer brackets. `salvage` walks
it from event to event. An event that is sound passes untouched, after one strict decoding. Any other is read by
`_Mender`, which follows the grammar of JSON with forbearance: what has one plain meaning is mended and counted by its
kind, a value that has none becomes `null` (the argument is lost, the event stays), and what leaves open where a text or
an event ends is lost, with place and reason. No bracket and no quote is ever added by guess. After a loss the walk goes
on at the next place that looks like the gap between two events.

Everything takes time in proportion to the chunk: the bytes that failing attempts may look at beyond their own piece are
limited for the whole chunk.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice

import msgspec

LARGEST_EVENT_BYTES = 16 * 2**20
DEEPEST = (
    400  # brackets within brackets, give or take two; the decoders' own limit depends on how deep the caller stands
)

_SPACE = b" \t\n\r"
_OPENING = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE, _COMMA, _CURLY, _SQUARE, _OPEN_SQUARE = b'",}]['
_LITERALS = frozenset({b"true", b"false", b"null"})
_NOT_FINITE = frozenset({b"inf", b"infinity", b"nan", b"nan(ind)", b"nan(snan)", b"1.#inf", b"1.#ind", b"1.#qnan"})
_ARRAY_ENDS_TRIED = 16  # places where the array may end that are looked at behind one loss, or doubted in one chunk
_LONGEST_NUMBER = 1000  # characters; converting longer ones would take more than linear time
_FAILING_SHARE = 1  # bytes that failing attempts may look at, in chunks

# Between two values. Control characters are no JSON; `_Mender` drops and counts them.
_BETWEEN = re.compile(rb"[\x00-\x20,]*+")
_GAP = re.compile(rb"[\x00-\x20]*+")
_BOUNDARY = re.compile(rb"\}(?:[\x00-\x20,]++|null(?=[\x00-\x20,]))*+\{")
_ARRAY_END = re.compile(rb"\}[\x00-\x20]*+\]")
_WORD = re.compile(rb'[^\x00-\x20,:\[\]{}"]++')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")

_ESCAPE = rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
_TEXT = re.compile(rb'"(?:[^"\\\x00-\x1f]++|%b)*+"' % _ESCAPE)
_LOOSE_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SOUND_ESCAPES = re.compile(rb"(?:[^\\]++|%b)*+" % _ESCAPE)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_SURROGATE = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

# A quote ends a text only if what stands behind it allows that.
_KEY = rb'[\x00-\x20]*+"(?:[^"\\]++|\\.)*+"[\x00-\x20]*+:'
_BEHIND_KEY = re.compile(rb"[\x00-\x20]*+:")
_BEHIND_MEMBER = re.compile(rb"[\x00-\x20,]*+(?:\}[\x00-\x20]*+(?:[,}\]]|\Z)|(?=\")%b)" % _KEY, re.DOTALL)
_BEHIND_ITEM = re.compile(
    rb'[\x00-\x20]*+(?:,[\x00-\x20,]*+(?:["\[{0-9tfnNI+-]|\Z|\][\x00-\x20]*+(?:[,}\]]|\Z))'
    rb"|\][\x00-\x20]*+(?:[,}\]]|\Z)|\Z)"
)
_RUNS_OUT = re.compile(rb'[\x00-\x20,]*+(?:"(?:[^"\\]++|\\.)*+(?:"[\x00-\x20]*+)?+)?+\\?\Z', re.DOTALL)
_KEY_INSIDE = re.compile(rb'"[\x00-\x20]*+:')


def _plain_list(opening: bytes, item: bytes, closing: bytes) -> bytes:
    """The expression of a bracket with sound items in it."""
    return rb"%b(?:%b(?:,%b)*+|[ \t\n\r]*+)%b" % (opening, item, item, closing)


def _spaced(expression: bytes) -> bytes:
    return rb"[ \t\n\r]*+%b[ \t\n\r]*+" % expression


# Members and items that need no mending, as many as follow one another: they are copied at the speed of the expression,
# a list of lists and an object of scalars among them, since most arguments are such.
_PLAIN = rb'"(?:[ !#-\[\]-\x7f]++|\\["\\/bfnrt])*+"'
_SCALAR = rb"(?:-?(?:0|[1-9][0-9]{0,99}+)(?:\.[0-9]{1,99}+)?+|true|false|null|%b)" % _PLAIN
_SCALARS = _plain_list(rb"\[", _spaced(_SCALAR), rb"\]")
_ITEM = _spaced(rb"(?:%b|%b)" % (_SCALAR, _SCALARS))
_LISTS = _plain_list(rb"\[", _ITEM, rb"\]")
_FLAT_MEMBER = _spaced(_PLAIN) + b":" + _spaced(rb"(?:%b|%b)" % (_SCALAR, _LISTS))
_FLAT = _plain_list(rb"\{", _FLAT_MEMBER, rb"\}")
_MEMBER = _spaced(_PLAIN) + b":" + _spaced(rb"(?:%b|%b|%b)" % (_SCALAR, _LISTS, _FLAT))
_PLAIN_MEMBERS = re.compile(rb"(?:%b(?:,(?=%b)|(?=\})))++" % (_MEMBER, _KEY), re.DOTALL)
_PLAIN_ITEMS = re.compile(rb'(?:%b(?:,(?=[ \t\n\r]*+["\[{0-9-])|(?=\])))++' % _ITEM)

_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Lost:
    """A stretch of the chunk that gave no event: its offset and length in bytes, and why in a few words."""

    offset: int
    length: int
    why: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What a chunk holds.

    `texts` are the array's elements in order, each strict JSON that `msgspec.json.decode` reads: the chunk's own bytes
    where nothing was wrong. Elements that are no objects (`null`) are among them. `repaired` counts elements by the
    kind of repair. `rest` is the tail of a chunk that is not final, from an event on that does not end in it; it goes
    before the next chunk, with the bytes between the two. `closed_at` is the offset of the array's `]`, None if the
    array does not end here; what follows it is the file's trailer. `texts_bytes` and `separators_bytes` count the bytes
    of the chunk from which the texts were read and those between elements, so that

        texts_bytes + separators_bytes + sum(lost.length) + len(rest) == closed_at, or len(chunk)
    """

    texts: list[bytes]
    repaired: dict[str, int]
    lost: list[Lost]
    rest: bytes
    closed_at: int | None
    texts_bytes: int
    separators_bytes: int


def salvage(chunk: bytes, final: bool) -> Salvaged:
    """Read all that can be read of a chunk which strict decoding refused. Never raises, whatever the bytes.

    `final`: nothing follows the chunk, so that an event which does not end is cut off and lost. Left out: an event that
    lost its end in the middle of an object and still reads as a shorter one; it is taken as it stands.
    """
    return _Walk(chunk, final).run()


class _Broken(Exception):
    """The element cannot be read; the message says why."""


class _CutOff(_Broken):
    """The data end before the element does."""


class _Walk:
    """The way through one chunk, from element to element."""

    def __init__(self, chunk: bytes, final: bool) -> None:
        self.chunk, self.final = chunk, final
        self.texts: list[bytes] = []
        self.repaired: Counter[str] = Counter()
        self.lost: list[Lost] = []
        self.pos = self.texts_bytes = self.separators_bytes = 0
        self.rest_at = len(chunk)
        self.closed_at: int | None = None
        self.piece_end = -1  # where the piece at `pos` ends if the guess of its boundary is right
        self.budget_bytes = _FAILING_SHARE * len(chunk)
        self.doubts = 0

    def run(self) -> Salvaged:
        while self.closed_at is None and self.pos < self.rest_at:
            self.step()
        rest = self.chunk[self.rest_at :]
        sizes = (self.texts_bytes, self.separators_bytes)
        return Salvaged(self.texts, dict(self.repaired), self.lost, rest, self.closed_at, *sizes)

    def step(self) -> None:
        """Pass what separates two elements, then one element, or the array's end."""
        self.pass_separators()
        if self.pos >= len(self.chunk):
            return
        if self.chunk[self.pos] == _SQUARE:
            self.close()
        elif not self.take_sound():
            self.take_mended()

    def pass_separators(self) -> None:
        match = _BETWEEN.match(self.chunk, self.pos)
        gap = match.group() if match else b""
        commas = gap.count(b",")
        edge = self.pos == 0 or self.pos + len(gap) == len(self.chunk)
        damaged = bool(self.lost) and self.lost[-1].offset + self.lost[-1].length == self.pos
        self.pos += len(gap)
        self.separators_bytes += len(gap)
        if not damaged and (commas != 1 or self.chunk[self.pos : self.pos + 1] == b"]"):
            self.count_commas(commas, edge)

    def count_commas(self, commas: int, edge: bool) -> None:
        closing = self.chunk[self.pos : self.pos + 1] == b"]"
        if commas > 1:
            self.repaired["doubled comma"] += 1
        elif closing and commas:
            self.repaired["trailing comma"] += 1
        elif not (closing or commas or edge):
            self.repaired["missing comma"] += 1

    def take_sound(self) -> bool:
        """Take the piece up to the next boundary if it is one strict value; tried once for each boundary."""
        if self.piece_end > self.pos:
            return False
        boundary = _BOUNDARY.search(self.chunk, self.pos)
        self.piece_end = boundary.start() + 1 if boundary else len(self.chunk)
        piece = self.chunk[self.pos : self.piece_end].rstrip(_SPACE)
        if len(piece) > LARGEST_EVENT_BYTES or _maybe_deep(piece) or _refusal(piece):
            return False
        self.take(piece, len(piece))
        return True

    def take(self, text: bytes, size: int) -> None:
        self.texts.append(text)
        self.texts_bytes += size
        self.pos += size

    def take_mended(self) -> None:
        """Read an element with forbearance, over as many boundaries as it holds; lose it if that fails."""
        mender = _Mender(self.chunk, self.pos, self.limit())
        try:
            text = mender.element()
        except _CutOff:
            self.spend(mender)
            self.cut_off()
        except _Broken as broken:
            self.spend(mender)
            self.lose(str(broken))
        else:
            if mender.repairs and self.is_undecided(mender.pos):
                return
            self.repaired.update(mender.repairs)
            self.take(text, mender.pos - self.pos)

    def limit(self) -> int:
        """How far an attempt may look: its own piece, farther while bytes are left for attempts that fail."""
        if self.chunk[self.pos] == _OPEN_SQUARE:
            return self.piece_end  # a stray bracket must not swallow the events behind it
        farthest = max(self.piece_end, self.pos + self.budget_bytes)
        return min(len(self.chunk), self.pos + LARGEST_EVENT_BYTES, farthest)

    def spend(self, mender: _Mender) -> None:
        beyond = max(mender.pos, mender.looked) - max(mender.start, self.piece_end)
        self.budget_bytes = max(0, self.budget_bytes - max(0, beyond))

    def cut_off(self) -> None:
        if not self.final:
            self.rest_at = self.pos
            return
        self.lose("no end found")
        last = self.lost[-1]
        if last.offset + last.length == len(self.chunk):
            self.lost[-1] = Lost(last.offset, last.length, "cut off")

    def is_undecided(self, end: int) -> bool:
        """Whether damage that reaches the end of the chunk may be the cut's own: then it goes before the next chunk."""
        undecided = not self.final and end == len(self.chunk) and end - self.pos < LARGEST_EVENT_BYTES
        if undecided:
            self.rest_at = self.pos
        return undecided

    def lose(self, why: str) -> None:
        end = self.resume_at()
        if self.is_undecided(end):
            return
        self.lost.append(Lost(self.pos, end - self.pos, why))
        self.pos = end

    def resume_at(self) -> int:
        """The next boundary that has an event behind it, else the array's end, else the end of the chunk.

        A boundary inside a lost event (`"args": {"list": [{}, {}]}`) has none: where a phase was lost, a piece without
        one belongs to what was lost.
        """
        boundary = _BOUNDARY.search(self.chunk, self.pos)
        if boundary and self.chunk.find(b'"ph"', self.pos, boundary.start()) >= 0:
            boundary = self.before_phase(boundary)
        if boundary:
            return boundary.start() + 1
        return self.array_end() if self.final else len(self.chunk)

    def before_phase(self, boundary: re.Match[bytes] | None) -> re.Match[bytes] | None:
        while boundary:
            following = _BOUNDARY.search(self.chunk, boundary.end() - 1)
            end = following.start() if following else len(self.chunk)
            if self.chunk.find(b'"ph"', boundary.end(), end) >= 0:
                break
            boundary = following
        return boundary

    def array_end(self) -> int:
        """Where the array ends behind a lost last event: at a `]` from which on the document is whole."""
        for match in islice(_ARRAY_END.finditer(self.chunk, self.pos), _ARRAY_ENDS_TRIED):
            if self.behind(match.end()) == "end":
                return match.end() - 1
        return len(self.chunk)

    def close(self) -> None:
        """Take a `]` between elements for the array's end, unless it is that of a list inside a lost event."""
        behind = self.behind(self.pos + 1)
        if behind == "more" or (behind == "broken" and self.goes_on()):
            self.lose("a ] that closes nothing")
        else:
            self.closed_at = self.pos

    def goes_on(self) -> bool:
        """Whether the array may go on behind something broken: after a loss, or where events follow."""
        self.doubts += 1
        if self.lost or self.doubts > _ARRAY_ENDS_TRIED:
            return True
        return self.before_phase(_BOUNDARY.search(self.chunk, self.pos)) is not None

    def behind(self, pos: int) -> str:
        """What stands behind a `]`: `end` (the document's), `more` events, `cut` off, or something `broken`."""
        pos = self.pass_gap(pos)
        byte = self.chunk[pos : pos + 1]
        if byte in (b"", b"}"):
            return self.behind_object(pos + 1)
        if byte in (b"{", b"]"):
            return "more"
        if byte not in (b",", b'"'):
            return "broken"
        pos = self.pass_gap(pos + (byte == b","))
        return "more" if self.chunk[pos : pos + 1] == b"{" else self.behind_trailer(pos)

    def behind_trailer(self, pos: int) -> str:
        """What stands behind further members of the object that holds the array."""
        self.doubts += 1
        if self.doubts > _ARRAY_ENDS_TRIED:
            return "broken"
        mender = _Mender(self.chunk, pos, min(len(self.chunk), pos + self.budget_bytes))
        try:
            mender.members()
        except _CutOff:
            return "cut"
        except _Broken:
            return "broken"
        finally:
            self.spend(mender)
        return self.behind_object(mender.pos)

    def behind_object(self, pos: int) -> str:
        pos = self.pass_gap(pos)
        byte = self.chunk[pos : pos + 1]
        if not byte:
            return "end"
        return "more" if byte in b",}]" else "broken"

    def pass_gap(self, pos: int) -> int:
        match = _GAP.match(self.chunk, pos)
        return match.end() if match else pos


class _Mender:
    """Reads one element as its writer meant it. `out` gathers strict JSON, `repairs` the kinds of what was mended."""

    def __init__(self, chunk: bytes, start: int, limit: int) -> None:
        self.chunk, self.start, self.limit = chunk, start, limit
        self.pos = self.looked = start
        self.ran_out = False  # the data end before it is known where the present text does
        self.wall = -1  # the next boundary: no text with damaged quotes reaches beyond it
        self.open = bytearray()  # the closing brackets that are awaited
        self.out: list[bytes] = []
        self.repairs: set[str] = set()

    def element(self) -> bytes:
        """The element as strict JSON, its own bytes if nothing was mended. Raises `_Broken` or `_CutOff`."""
        self.value()
        self.rest_of_value()
        text = b"".join(self.out) if self.repairs else self.chunk[self.start : self.pos]
        refusal = _refusal(text)
        if refusal:
            raise _Broken(refusal)
        return text

    def members(self) -> None:
        """Read the rest of an object whose opening bracket stands before the start."""
        self.open.append(_CURLY)
        self.rest_of_value()

    def rest_of_value(self) -> None:
        first = True
        while self.open:
            depth = len(self.open)
            self.member(first) if self.open[-1] == _CURLY else self.item(first)
            first = len(self.open) > depth

    def member(self, first: bool) -> None:
        """A member of an object, or its closing bracket."""
        plain = self.plain(_PLAIN_MEMBERS, first)
        byte = self.separator(first, plain)
        if byte == _CURLY:
            self.closing()
        elif byte == _QUOTE:
            self.text(_BEHIND_KEY, lenient=False)
            self.next_byte()
            self.out.append(b":")
            self.pos += 1
            self.value()
        else:
            raise _Broken("a key was expected")

    def item(self, first: bool) -> None:
        """An item of an array, or its closing bracket."""
        plain = self.plain(_PLAIN_ITEMS, first)
        if self.separator(first, plain) in (_SQUARE, _CURLY):
            self.closing()
        else:
            self.value()

    def plain(self, pattern: re.Pattern[bytes], first: bool) -> bool:
        """Copy what needs no mending, behind an opening bracket or a comma; True if a comma ends it."""
        comma = b"" if first else b","
        start = self.pos if first else self.behind_comma()
        match = pattern.match(self.chunk, start, self.limit) if start >= 0 else None
        if match:
            self.out += (comma, match.group())
            self.pos = match.end()
        return match is not None and self.chunk[self.pos - 1] == _COMMA

    def behind_comma(self) -> int:
        return self.pos + 1 if self.pos < self.limit and self.chunk[self.pos] == _COMMA else -1

    def separator(self, first: bool, plain: bool) -> int:
        """Pass the commas before a member or item; return the byte behind them."""
        match = _BETWEEN.match(self.chunk, self.pos, self.limit)
        gap = match.group() if match else b""
        if gap.translate(None, _SPACE + b","):
            self.repairs.add("control character")
        self.pos += len(gap)
        byte = self.byte()
        commas = gap.count(b",") + plain
        closing = byte in (_CURLY, _SQUARE)
        expected = 0 if closing or (first and not plain) else 1
        if commas != expected:
            self.repairs.add("trailing comma" if closing else "doubled comma" if commas else "missing comma")
        if expected and not plain:
            self.out.append(b",")
        return byte

    def byte(self) -> int:
        """The byte here. Raises `_CutOff` where the data end, `_Broken` where an event may go on no farther."""
        if self.pos < self.limit:
            return self.chunk[self.pos]
        if self.limit == len(self.chunk):
            raise _CutOff("cut off")
        whole = self.limit - self.start >= LARGEST_EVENT_BYTES
        raise _Broken(f"larger than {LARGEST_EVENT_BYTES >> 20} MiB" if whole else "no end found")

    def next_byte(self) -> int:
        match = _GAP.match(self.chunk, self.pos, self.limit)
        gap = match.group() if match else b""
        if gap.strip(_SPACE):
            self.repairs.add("control character")
        self.pos += len(gap)
        return self.byte()

    def closing(self) -> None:
        if self.chunk[self.pos] != self.open.pop():
            raise _Broken("a closing bracket that does not fit")
        self.out.append(self.chunk[self.pos : self.pos + 1])
        self.pos += 1

    def value(self) -> None:
        byte = self.next_byte()
        if byte in _OPENING:
            self.opening(byte)
        elif byte == _QUOTE:
            self.text(_BEHIND_MEMBER if self.open[-1:] == b"}" else _BEHIND_ITEM, lenient=True)
        else:
            self.word()

    def opening(self, byte: int) -> None:
        if len(self.open) >= DEEPEST:
            raise _Broken(f"nested deeper than {DEEPEST} brackets")
        self.open.append(_OPENING[byte])
        self.out.append(bytes((byte,)))
        self.pos += 1

    def word(self) -> None:
        """A number or literal; what is neither, or stands for no number of JSON, becomes `null`."""
        match = _WORD.match(self.chunk, self.pos, self.limit)
        word = match.group() if match else b""
        self.pos += len(word)
        if word and self.pos == self.limit and self.open:
            self.byte()  # it may go on where the data end
        damage = _damage_of(word)
        if damage and not (self.open and (word or self.misses_value())):
            raise _Broken("a value was expected")
        if damage:
            self.repairs.add(damage)
        self.out.append(b"null" if damage else word)

    def misses_value(self) -> bool:
        """`"key": ,` or `"key": }`: only a member can lack its value."""
        return self.open[-1] == _CURLY and self.chunk[self.pos] in b",}"

    def text(self, behind: re.Pattern[bytes], lenient: bool) -> None:
        """A key or a text: as it stands, else with what is inside escaped, else up to a quote that may end it."""
        match = _TEXT.match(self.chunk, self.pos, self.limit)
        if not (match and behind.match(self.chunk, match.end(), self.limit)):
            match = _LOOSE_TEXT.match(self.chunk, self.pos, self.limit)
        if match and behind.match(self.chunk, match.end(), self.limit):
            end = match.end()
        else:
            self.looked = match.end() if match else self.limit
            self.ran_out = bool(_RUNS_OUT.match(self.chunk, self.looked, self.limit))
            end = self.lenient_end(behind) if lenient else self.no_end("a key that does not end")
        self.out.append(b'"%b"' % _escaped(self.chunk[self.pos + 1 : end - 1], self.repairs))
        self.pos = end

    def lenient_end(self, behind: re.Pattern[bytes]) -> int:
        """The end of a text that holds bare quotes. Raises `_Broken` where a member may be hidden inside."""
        quote = self.chunk.find(b'"', self.pos + 1, self.before_wall())
        while quote >= 0 and not behind.match(self.chunk, quote + 1, self.limit):
            quote = self.chunk.find(b'"', quote + 1, self.before_wall())
        if quote < 0:
            return self.no_end("a text that does not end")
        if _KEY_INSIDE.search(self.chunk, self.pos + 1, quote):
            raise _Broken("a quote leaves open where a text ends")
        return quote + 1

    def no_end(self, why: str) -> int:
        """A text without an end: cut off if it may go on where the data end, else broken."""
        if self.ran_out or self.before_wall() == self.limit:
            self.pos = self.limit
            self.byte()
        raise _Broken(why)

    def before_wall(self) -> int:
        if self.wall < self.pos:
            boundary = _BOUNDARY.search(self.chunk, self.pos, self.limit)
            self.wall = boundary.start() if boundary else self.limit
        return self.wall


def _refusal(text: bytes) -> str:
    """Why strict decoding refuses the text, empty if it does not."""
    try:
        _ANY.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return str(error)
    return ""


def _maybe_deep(text: bytes) -> bool:
    return text.count(b"{") + text.count(b"[") > DEEPEST


def _damage_of(word: bytes) -> str:
    """The kind of repair that a word needs, empty if it is a number within range or a literal."""
    if word in _LITERALS:
        return ""
    if _NUMBER.fullmatch(word):
        fits = len(word) <= _LONGEST_NUMBER and math.isfinite(float(word))
        return "" if fits else "number out of range"
    if word.lstrip(b"+-").lower() in _NOT_FINITE:
        return "inf or nan"
    return "unreadable value" if word else "missing value"


def _escaped(content: bytes, repairs: set[str]) -> bytes:
    """The inside of a text as strict JSON has it; adds what was mended to `repairs`."""
    content = _as_utf8(content, repairs)
    if not _SOUND_ESCAPES.fullmatch(content):
        # Who leaves one backslash bare escapes none: C:\new holds no line break.
        content = content.replace(b"\\", b"\\\\").replace(b'\\\\"', b'\\"')
        repairs.add("bare backslash")
    if b'"' in content:
        content = _with_quotes_escaped(content, repairs)
    if _CONTROL.search(content):
        for code in range(0x20):
            content = content.replace(bytes((code,)), b"\\u%04x" % code)
        repairs.add("control character")
    return _without_surrogates(content, repairs) if b"\\u" in content else content


def _as_utf8(content: bytes, repairs: set[str]) -> bytes:
    try:
        content.decode()
    except UnicodeDecodeError:
        repairs.add("bad UTF-8")
        return content.decode(errors="replace").encode()
    return content


def _with_quotes_escaped(content: bytes, repairs: set[str]) -> bytes:
    parts = content.split(b"\\\\")  # in between, a backslash before a quote escapes it
    escaped = b"\\\\".join(part.replace(b'\\"', b'"').replace(b'"', b'\\"') for part in parts)
    if escaped != content:
        repairs.add("quote in a text")
    return escaped


def _without_surrogates(content: bytes, repairs: set[str]) -> bytes:
    whole = _SURROGATE.sub(lambda match: match.group(1) or b"\\ufffd", content)
    if whole != content:
        repairs.add("lone surrogate")
    return whole
