"""Readers of public text corpora, and of two sets of texts for experiments on redaction.

`read_corpus` reads a whole corpus, in the format of its files. `read_texts` and
`read_sensitive_and_other_texts` provide the texts of the experiments on redaction.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ..errors import choice, invalid, message, mistyped, tag_error
from ..suggestions import explain_argument_errors
from ..text import Corpus, generated, read
from ..text.corpus import SPLITS, fold_case_and_blanks
from ..text.reading import File, Layout, Row, corpus_from_rows, load_text_file, read_table_rows
from .base import SeededSettings, check_trials, setting
from .running import cell_seed, group_answers

__all__ = ["Name", "read_corpus"]


Name = Literal[
    "dpnr_ag", "ag_news", "atis", "snips", "medical", "leakage", "names", "wikitext2", "polarity",
    "textfooler", "yelp",
]  # fmt: skip
"""Type of the names of the known corpora."""

ENTITIES: Final = ("Bush", "Kerry", "Arafat", "Blair", "Sharon")
"""Private attributes of the AG corpus in the DPNR paper. Each is the surname of a person, and the
attribute states whether a text names this person."""

_SENSITIVE_LABELS: Final[dict[bool, int | str]] = {True: 1, False: "money"}
"""Label of the sensitive texts: 1 (neoplasms) for real texts, "money" for generated texts."""

_GENERATED_ROWS: Final = {False: 4_000, True: 1_000}
"""Number of generated texts, for `quick` False and True."""

MIN_SET_TEXTS: Final = 100
"""Smallest number of texts in a set. A model is fitted on half of each set, and needs enough texts.
"""

Parts = Iterator[tuple[str | None, Iterable[Row]]]


@dataclass(frozen=True, slots=True)
class Known:
    """Description of the files of one public text corpus, and the functions that read these files.

    Args:
        files: dict with the name of each file as a key. The value is the part of the corpus in this
            file, such as "train" or "test". The part is None if the file contains several parts, or
            if the corpus is not split into parts.
        origin: source and license of the corpus.
        rows: function from an open file to rows. Each row is a text with a label or attributes.
            None if `parts` is given.
        parts: function that reads a file with several parts, such as "train" and "test". It yields
            one pair for each part: the name of the part (or None), and its rows. None if `rows` is
            given.
        members: names of the files to read in each zip archive. Empty if the files of the corpus
            are not archives.
        optional: names of files that may be missing.
    """

    files: Mapping[str, str | None]
    origin: str
    rows: Callable[[File], Iterable[Row]] | None = None
    parts: Callable[[File], Parts] | None = None
    members: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def read(self, path: Path) -> Parts:
        """Read one file of this corpus, and yield each part with its rows.

        Each pair contains the name of the part ("train", "valid", "test" or None), and the rows of
        the part.
        """
        file = load_text_file(path, self.origin)
        if self.parts:
            yield from self.parts(file)
        for member_file in [_open_member(path, file, member) for member in self.members] or [file]:
            if self.rows:
                yield self.files.get(path.name), self.rows(member_file)


def _open_member(path: Path, file: File, member: str) -> File:
    """Read one file from a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            return File(f"{file.name}:{member}", file.origin, archive.read(member))
    except (zipfile.BadZipFile, KeyError) as error:
        requirement = f"a zip archive that holds {member} ({file.origin})"
        text = f"{message('path', requirement, str(path))}: {error}"
        raise tag_error(ValueError(text), "path") from None


def _read_dpnr(file: File) -> Parts:
    rows: list[Row] = []
    names = list(SPLITS)
    number = 1
    for number, line in file.filled():
        if line == "=" * 20:
            if not names:
                raise file.error(number, "absent: a file has three parts", line)
            yield names.pop(0), rows
            rows = []
            continue
        if not names:
            raise file.error(number, "absent: the third part has ended", line)
        match = re.fullmatch(r"(\d+)\t([^\t]+)\t([0-4](?: [0-4])*)", line)
        if match is None:
            raise file.error(number, "label, text and attributes, parted by tabs", line)
        label, text, held = match.groups()
        flags = {name: int(str(i) in held.split()) for i, name in enumerate(ENTITIES)}
        rows.append(Row(file.text(number, text), int(label), flags))
    if names or rows:
        raise file.error(number, "the third line of 20 signs =, the last of the file", "no more")


def _read_line_rows(file: File, label: int | str | None = None) -> Iterator[Row]:
    return (Row(file.text(number, line), label) for number, line in file.filled())


def _label_by_file_suffix(file: File) -> Iterator[Row]:
    """Read one text per line. The ending of the file name gives the label of all texts in the file.

    The label is 0 for the endings .0 and .neg, and 1 for .1 and .pos.
    """
    return _read_line_rows(file, {"0": 0, "neg": 0, "1": 1, "pos": 1}[file.name.rpartition(".")[2]])


def _read_labelled(file: File) -> Iterator[Row]:
    for number, line in file.filled():
        label, _, text = line.partition(" ")
        if label not in ("0", "1"):
            raise file.error(number, "0 or 1, a blank and a text", line)
        yield Row(file.text(number, text), int(label))


def _first_column(file: File) -> Iterator[Row]:
    for number, line in file.filled():
        english, tab, other = line.partition("\t")
        if not tab or not other.strip():
            raise file.error(number, "two sentences parted by a tab", line)
        yield Row(file.text(number, english))


def _label_by_file_stem(file: File) -> Iterator[Row]:
    return _read_line_rows(file, file.name.rpartition("/")[2].removesuffix(".txt"))


_read_intents = partial(read_table_rows, kind="csv", layout=Layout(text=1, label=0))
_read_news = partial(read_table_rows, kind="tsv", layout=Layout(text=0, label=1))
_read_medical = partial(
    read_table_rows, kind="csv", layout=Layout(text="medical_abstract", label="condition_label")
)
_SPLIT_FILES: Final[dict[str, str | None]] = {f"{part}.csv": part for part in SPLITS}

KNOWN: Final[dict[str, Known]] = {
    "dpnr_ag": Known({"ag_data.txt": None}, "DPNR authors' AG file; AG corpus: research, "
                     "non-commercial", parts=_read_dpnr),
    "ag_news": Known({"train.tsv": "train", "test.tsv": "test"},
                     "AG News as in the ALPS repository (MIT)", _read_news),
    "atis": Known(_SPLIT_FILES, "ATIS as in DP-Rewrite (Apache-2.0)", _read_intents),
    "snips": Known(_SPLIT_FILES, "SNIPS (CC0)", _read_intents),
    "medical": Known({"abstracts.csv": None}, "Medical Abstracts TC corpus (CC BY-SA 3.0)",
                     _read_medical),
    "leakage": Known({"spa-eng.zip": None},
                     "English sentences of Tatoeba's Spanish pairs (CC BY 2.0)",
                     _first_column, members=("spa-eng/spa.txt",)),
    "names": Known({"names.zip": None}, "NLTK names corpus (free with credit)", _label_by_file_stem,
                   members=("names/male.txt", "names/female.txt")),
    "wikitext2": Known({f"{part}.txt": part for part in SPLITS}, "WikiText-2 (CC BY-SA)",
                       _read_line_rows, optional=("train.txt",)),
    "polarity": Known({"sentence_polarity.zip": None}, "sentence polarity corpus (CC BY 4.0)",
                      _label_by_file_suffix,
                      members=("sentence_polarity/rt-polarity.neg",
                               "sentence_polarity/rt-polarity.pos")),
    "textfooler": Known({"textfooler_yelp.txt": None}, "Yelp sample of TextFooler (MIT)",
                        _read_labelled),
    "yelp": Known(dict.fromkeys(("sentiment.dev.0", "sentiment.dev.1"), "train")
                  | dict.fromkeys(("sentiment.test.0", "sentiment.test.1"), "test"),
                  "Yelp sentences of Sentiment-and-Style-Transfer", _label_by_file_suffix),
}  # fmt: skip
"""All corpora that `read_corpus` can read by name."""

_CORPUS_FOLDERS = {"names": "words", "textfooler": "yelp"}
"""Folder of a corpus, if the name of the folder differs from the name of the corpus."""


@explain_argument_errors
def read_corpus(path: str | os.PathLike[str], name: Name | None = None) -> Corpus:
    r"""Read a public corpus from its file or folder.

    Args:
        path: path of a file of the corpus, of the folder of the corpus, or of the parent of this
            folder.
        name: name of the corpus, a key of `KNOWN`, such as "atis". By default, the function
            recognises the corpus from the names of the files and folders. If the function
            recognises no known corpus, `dpcore.text.read` reads the path.

    Returns:
        The corpus. If the files are split into parts, such as train and test, the corpus has the
        same parts.

    Raises:
        TypeError: if `path` is not a path.
        FileNotFoundError: if a file is missing. The message states where the corpus can be
            obtained.
        ValueError: if a line does not have the expected format, or if a folder contains several
            corpora and `name` is None.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     file = Path(name, "textfooler_yelp.txt")
        ...     _ = file.write_text("1 good food\n0 never again\n")
        ...     read_corpus(file)
        Corpus(2 texts; labels 0 1; textfooler: Yelp sample of TextFooler (MIT))
    """
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "a path of a file or a folder", path)
    place = Path(path)
    kinds = _match_known_corpora(place) if name is None else [choice("name", name, tuple(KNOWN))]
    if len(kinds) > 1:
        raise invalid("name", f"given: the folder {place.name} holds {', '.join(kinds)}", None)
    if not kinds:
        return read(place)
    facts = KNOWN[kinds[0]]
    parts = [part for file in _list_files(kinds[0], place) for part in facts.read(file)]
    return corpus_from_rows(parts, f"{kinds[0]}: {facts.origin}")


def _list_files(kind: str, path: Path) -> list[Path]:
    """List the files of a corpus, given one file, its folder, or the parent of its folder.

    The list includes missing files that are not optional, so that opening such a file raises a
    FileNotFoundError.
    """
    if not path.is_dir():
        return [path]
    facts = KNOWN[kind]
    folders = (path, path / kind, path / _CORPUS_FOLDERS.get(kind, kind))
    held = [folder for folder in folders if any((folder / f).is_file() for f in facts.files)]
    folder = held[0] if held else path
    files = [folder / name for name in facts.files]
    return [file for file in files if file.is_file() or file.name not in facts.optional]


def _match_known_corpora(path: Path) -> list[str]:
    """List the known corpora whose file or folder names match a path. The list may be empty."""

    def has_any(folder: Path, names: Iterable[str]) -> bool:
        return any((folder / name).is_file() for name in names)

    if path.is_dir():
        if path.name in KNOWN and has_any(path, KNOWN[path.name].files):
            return [path.name]
        return [
            kind
            for kind, facts in KNOWN.items()
            if has_any(path / _CORPUS_FOLDERS.get(kind, kind), facts.files)
            or has_any(path, (name for name in facts.files if not _is_split_file_name(name)))
        ]
    own = [kind for kind, facts in KNOWN.items() if path.name in facts.files]
    return [kind for kind in own if path.parent.name == kind or not _is_split_file_name(path.name)]


def _is_split_file_name(name: str) -> bool:
    """Return True if `name` is a file name that many corpora use, such as train.csv or test.tsv."""
    return name.partition(".")[0] in SPLITS


@dataclass(frozen=True, slots=True, repr=False)
class TextOptions(SeededSettings):
    """Options of an experiment on texts.

    Args:
        trials: largest number of texts in a set of texts, at least 100.
        seed: int in [0, 2**63). The experiment derives a separate seed for each step from this
            seed.
        seeds: number of repetitions. The table shows the mean and the standard deviation over the
            repetitions. The default depends on the experiment. If `quick` is True, the default is
            1. If `full` is True, the default is larger than the usual default.
        data: folder of the corpora. By default, the experiment generates texts.
        full: True for more repetitions.
        quick: True for a short run that only shows that the experiment works.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.
    """

    trials: int = setting(10**6, check_trials, MIN_SET_TEXTS)
    seeds: int = setting(5, quick=1, full=20)
    data: str | None = None
    full: bool = False
    quick: bool = False

    @property
    def origin_note(self) -> str:
        """Text that states that the texts are generated, or "" if they are read from `data`."""
        return "" if self.data is not None else " (generated texts: give --data for real ones)"


class TwoSets(NamedTuple):
    """A set of sensitive texts and a set of other texts. No text occurs twice.

    Attributes:
        origin: source of the texts.
        sensitive: texts that have only the sensitive label.
        rest: all texts that do not have the sensitive label.
        rest_labels: label of each text in `rest`. If a text has several labels, the list has the
            label that comes first in the corpus.
        dropped: number of distinct texts that have the sensitive label and also another label.
            These texts are in neither set.
    """

    origin: str
    sensitive: tuple[str, ...]
    rest: tuple[str, ...]
    rest_labels: tuple[int | str, ...]
    dropped: int


def read_texts(config: Any, name: Any, kind: Any, rows: int, key: str = "corpus") -> Corpus:
    """Read a corpus from `config.data`, or generate a corpus if `config.data` is None.

    Args:
        config: options of an experiment, with the fields `data` and `seed`.
        name: name of the corpus to read, such as "atis" (as in `read_corpus`).
        kind: kind of texts to generate, such as "topics" (as in `dpcore.text.generated`).
        rows: number of texts to generate.
        key: text that changes the seed of the generated texts. The function derives the seed from
            `key` and `config.seed`.

    Raises:
        FileNotFoundError: if a file of the corpus is missing.
    """
    if config.data is not None:
        return read_corpus(config.data, name)
    return generated(kind, rows, rng=cell_seed(config.seed, key))


def read_sensitive_and_other_texts(config: TextOptions) -> TwoSets:
    """Return a set of sensitive texts and a set of other texts, without repeated texts.

    Two texts count as equal if they differ only in letter case or white space. If equal texts have
    the sensitive label and also another label, the function leaves all these texts out.

    Args:
        config: options of the experiment. If `data` is given, the function reads medical abstracts,
            and the sensitive texts have the label "neoplasms". Otherwise, the function generates
            texts, and the sensitive texts have the topic money.

    Returns:
        The two sets. The sensitive set has at most `config.trials` texts, chosen at random.

    Raises:
        FileNotFoundError: if a file of the corpus is missing.
        ValueError: if the sensitive set has fewer than 100 texts, or if the set of other texts is
            less than twice as large as the sensitive set.
    """
    origin, sensitive, others, dropped = split_texts(config, _GENERATED_ROWS[config.quick])
    order = np.random.default_rng(cell_seed(config.seed, "sensitive")).permutation(len(sensitive))
    chosen = tuple(sensitive[row] for row in sorted(order[: config.trials].tolist()))
    if len(chosen) < MIN_SET_TEXTS or len(others) < 2 * len(chosen):
        requirement = f"a corpus with {MIN_SET_TEXTS} sensitive texts, and twice as many others"
        raise invalid("data", requirement, f"{len(chosen):,} and {len(others):,}")
    return TwoSets(origin, chosen, tuple(others), tuple(others.values()), dropped)


def split_texts(config: TextOptions, rows: int) -> tuple[str, list[str], dict[str, int | str], int]:
    """Read or generate texts, and separate the sensitive texts from all other texts.

    If several texts are equal (except for letter case and white space), only the first is kept. A
    text with the sensitive label and another label is left out.

    Args:
        config: options of the experiment.
        rows: number of texts to generate if `config.data` is None.

    Returns:
        A tuple with four entries: the source of the texts; the list of sensitive texts; a dict with
        every other text as a key and its first label as the value; and the number of distinct texts
        that were left out.
    """
    corpus = read_texts(config, "medical", "topics", rows)
    sensitive_label = _SENSITIVE_LABELS[config.data is not None]
    assert corpus.labels is not None
    labels = group_answers(map(fold_case_and_blanks, corpus.texts), corpus.labels.tolist())
    firsts = dict(
        zip(map(fold_case_and_blanks, reversed(corpus.texts)), reversed(corpus.texts), strict=True)
    )
    sensitive = [
        firsts[key]
        for key, labels_of_text in labels.items()
        if set(labels_of_text) == {sensitive_label}
    ]
    others = {
        firsts[key]: labels_of_text[0]
        for key, labels_of_text in labels.items()
        if sensitive_label not in labels_of_text
    }
    return corpus.origin, sensitive, others, len(labels) - len(sensitive) - len(others)
