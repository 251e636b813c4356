"""Policies: rules that give each word of a document a number (the level).

A redaction at level p masks all words whose level is at most p. The policy `Learned` is trained on
word vectors. Its method `fit` needs torch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...errors import flag, instance, integer, invalid, mistyped, numeric, real
from ...mechanisms.texts import as_texts
from ...packages import has_all, require_module
from ...records import Floats, Record, frozen_array
from ...report.shown import name_of
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from ..corpus import words_of
from ..words.embedding import Embedding
from .masking import Levels, hash_texts, split_words, spread_levels

_OUTER_PUNCTUATION: Final = re.compile(r"^[\W_]+|[\W_]+$")
_POSSESSIVE_ENDING: Final = re.compile(r"['\u2019]s$")
_WORD_SPAN_PATTERN: Final = re.compile(r"\S+")
"""Pattern of a word between white space, to find the position of the word in the text."""

_KEYWORD_INVERSE_PENALTY: Final = 10.0
_MIN_TEXTS_PER_KEYWORD: Final = 2
"""Smallest number of texts that must contain a word. `Ranked` gives rarer words no weight."""

_PhraseIndex = dict[str, list[tuple[str, ...]]]
_THRESHOLD_SHARPNESS: Final = 50.0
"""Factor T of the soft mask ``sigmoid(T (rank - threshold))`` in training."""
_DOCUMENTS_PER_BATCH: Final = 64
_LEARNING_RATE: Final = 3e-3
_ADDED_VARIANCE: Final = 1e-4


class FrozenPolicy(Record):
    """Base class of redaction policies (rules that choose the words to mask in a text).

    Attributes:
        kind: short name of the policy in tables.
        has_levels: True if the level (a share of words from 0 to 1) determines how many words the
            policy masks. False if the policy masks the same words at every level.
        needs_fit: True if `fit` must be called before the policy is used.
        is_random: True if a call of the policy draws random numbers.
        is_fit_random: True if `fit` draws random numbers.
    """

    __slots__ = ()
    kind: ClassVar[str]
    has_levels: ClassVar[bool] = True
    needs_fit: ClassVar[bool] = False
    is_random: ClassVar[bool] = False
    is_fit_random: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name of this policy in tables: its kind, and its settings that differ from defaults."""
        # Fields that `fit` sets have an empty default; they are not settings.
        settings: Any = fields(self)  # type: ignore[arg-type]
        values = [
            (setting.name, getattr(self, setting.name), setting.default) for setting in settings
        ]
        changed = [
            f"{name}={value!r}"
            for name, value, usual in values
            if isinstance(usual, (bool, int, float, str)) and value != usual
        ]
        return " ".join([self.kind, *changed])


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Random(FrozenPolicy, word="redaction.Random"):
    """Policy that masks randomly chosen words.

    The level p is a number from 0 to 1. At level p, approximately p n of the n words of each
    document are masked. A call of the policy returns one number for each word. A word is masked at
    level p if its number is at most p.

    Args:
        exact: True masks exactly ``floor(p n + 1/2)`` of the n words of a document at level p.
            False masks each word independently with probability p.

    Raises:
        TypeError: if `exact` is not True or False.

    Source:
        Gusain and Leith (2023), Towards Quantifying the Privacy of Redacted Text.

    Example:
        >>> Random()(["one two three four"], np.random.default_rng(1))
        [array([0.125, 0.375, 0.625, 0.875])]
    """

    exact: bool = True

    kind: ClassVar[str] = "random"
    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields."""
        flag("exact", self.exact)

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Draw a random number from 0 to 1 (the level) for each word of each document."""
        sizes = [len(split_words(text)) for text in documents]
        if self.exact:
            return [rng.permutation(spread_levels(size)) for size in sizes]
        # The levels are in (0, 1], so no word is masked at level 0.
        return [1.0 - rng.random(size) for size in sizes]


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranked(FrozenPolicy, word="redaction.Ranked"):
    """Policy that first masks the words which best distinguish sensitive texts from safe texts.

    `fit` fits a logistic regression (inverse penalty 10) that distinguishes the two sets. The
    inputs of the regression are TF-IDF weights of the words that occur in two texts or more. The
    function `words_of` finds these words, and splits "well-known" into two words. However, a
    redaction masks whole strings between blanks, such as "well-known". The rank of a string is the
    largest absolute coefficient among the words in the string. The string with the highest rank is
    masked first. A string is masked last if it has only words without a coefficient. A fitted
    policy discloses information about the texts on which it was fitted.

    Args:
        per_document: at level p (a number from 0 to 1), True masks the share p of the words of each
            document. False masks all words whose rank is at least a threshold. This threshold is
            the same for all documents. It is chosen so that approximately the share p of the words
            of all training texts is masked.
        words: words with a coefficient in the regression, set by `fit`.
        weights: coefficient of each word, set by `fit`. A coefficient above 0 means that the word
            indicates the sensitive set.
        shares: one number in [0, 1] for each word, set by `fit`. The number is the share of the
            words in the training texts that have at least the rank of this word.
        fitted_on: fingerprints (hashes) of the training texts, set by `fit`.

    Raises:
        TypeError: if `per_document` is not True or False.
        ValueError: if `words`, `weights` and `shares` differ in length.

    Source:
        Gusain and Leith (2024), Plausible Deniability of Redacted Text.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     policy = Ranked().fit(["a tumour", "one tumour"], ["a cold", "one cold"])
        ...     levels = policy(["This tumour grew"], np.random.default_rng(1))
        ...     assert levels[0].argmin() == 1
    """

    per_document: bool = True
    words: tuple[str, ...] = ()
    weights: Any = ()
    shares: Any = ()
    fitted_on: frozenset[int] = frozenset()

    kind: ClassVar[str] = "ranked"
    needs_fit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields and make the arrays read-only."""
        flag("per_document", self.per_document)
        for name in ("weights", "shares"):
            need = f"numbers for {len(self.words):,} words"
            array = frozen_array(numeric(name, need, getattr(self, name)).astype(np.float64))
            if array.shape != (len(self.words),):
                raise invalid(name, need, array.shape)
            object.__setattr__(self, name, array)

    @property
    def is_fitted(self) -> bool:
        """True if the policy was fitted."""
        return bool(self.words)

    def fit(self, sensitive: Any, safe: Any, *, rng: Rng = None) -> Ranked:
        """Fit a copy of this policy on two sets of texts, and return the copy.

        Args:
            sensitive: texts of the sensitive set. Each text has at least one word.
            safe: texts of the safe set. Each text has at least one word.
            rng: not used, because the fit is not random.

        Returns:
            The fitted copy. The original policy is unchanged.

        Raises:
            ModuleNotFoundError: if scikit-learn is missing.
            ValueError: if a set or a text is empty, or no word occurs in two texts.
        """
        sets = as_texts("sensitive", sensitive), as_texts("safe", safe)
        texts = [text for part in sets for text in part]
        extraction = require_module("sklearn.feature_extraction.text", "redaction.Ranked")
        linear = require_module("sklearn.linear_model", "redaction.Ranked")
        least = _MIN_TEXTS_PER_KEYWORD
        features = extraction.TfidfVectorizer(analyzer=words_of, sublinear_tf=True, min_df=least)
        often = Counter(word for text in texts for word in {*words_of(text)})
        if max(often.values(), default=0) < least:
            raise invalid("sensitive", f"texts with a word that {least} texts have", sensitive)
        rows = features.fit_transform(texts)
        model = linear.LogisticRegression(C=_KEYWORD_INVERSE_PENALTY, max_iter=1000)
        model.fit(rows, np.repeat([1, 0], [len(part) for part in sets]))
        words = tuple(features.get_feature_names_out().tolist())
        sizes = np.abs(model.coef_[0])
        rank = dict(zip(words, sizes.tolist(), strict=True))
        # The rank of a word of a text is at least the rank of each of its parts, so no share is 0.
        ranks = np.sort(np.concatenate([_max_rank_per_token(rank, text) for text in texts]))
        shares = 1.0 - np.searchsorted(ranks, sizes) / len(ranks)
        return replace(
            self, words=words, weights=model.coef_[0], shares=shares,
            fitted_on=hash_texts(texts),
        )  # fmt: skip

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document; the result is not random."""
        require_fitted(self)
        if self.per_document:
            rank = dict(zip(self.words, np.abs(self.weights).tolist(), strict=True))
            return [descending_rank_levels(_max_rank_per_token(rank, text)) for text in documents]
        # The share decreases as the weight increases.
        below = dict(zip(self.words, (-self.shares).tolist(), strict=True))
        return [-_max_rank_per_token(below, text, -1.0) for text in documents]


def require_fitted(policy: Any) -> None:
    """Raise an error if a redaction policy needs a fit but is not fitted."""
    if not policy.is_fitted:
        raise invalid("policy", "fitted before it is used: policy.fit(sensitive, safe)", policy)


def descending_rank_levels(scores: Levels) -> Levels:
    """Convert the scores of the words of a document to one number (level) for each word.

    A redaction at level p (from 0 to 1) masks the words whose level is at most p. The word with the
    highest score gets the lowest level. Among words with equal scores, the first word in the
    document gets the lowest level.

    Example:
        >>> descending_rank_levels(np.array([0.1, 2.0]))
        array([0.75, 0.25])
    """
    levels = np.empty(len(scores))
    levels[np.argsort(-scores, kind="stable")] = spread_levels(len(scores))
    return levels


def _max_rank_per_token(rank: Mapping[str, float], text: str, unknown: float = 0.0) -> Floats:
    """Return, for each string between blanks, the highest rank of its words."""
    words = map(words_of, split_words(text))
    ranks = [max((rank.get(part, unknown) for part in word), default=unknown) for word in words]
    return np.array(ranks)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Keywords(FrozenPolicy, word="redaction.Keywords"):
    """Policy that masks the words and phrases of a list.

    The policy ignores upper and lower case. It also ignores punctuation at the start and end of
    words. A call of the policy returns one number for each word: 0 for a word that is masked, and
    infinity for any other word.

    Args:
        keywords: list of words and phrases to mask.

    Raises:
        TypeError: if an entry is not a string.
        ValueError: if the list is empty, or an entry has neither a letter nor a digit.

    Example:
        >>> Keywords(["heart attack"])(["Heart attack, no heart."], np.random.default_rng(1))
        [array([ 0.,  0., inf, inf])]
    """

    keywords: Sequence[str]

    kind: ClassVar[str] = "keywords"
    has_levels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the list and store it as a tuple."""
        object.__setattr__(self, "keywords", _read_phrases("keywords", self.keywords))

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document: 0 or inf."""
        phrases = _index_phrases(self.keywords)
        return [_zero_or_inf_levels(split_words(text), phrases) for text in documents]


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gazetteer(FrozenPolicy, word="redaction.Gazetteer"):
    """Policy that masks each name of a list if the name is capitalised ("Will", but not "will").

    The policy ignores the ending 's. It also ignores punctuation at the start and end of words. In
    a name of several words, only the first word must be capitalised. The first word of a sentence
    is always capitalised. Therefore the policy may mask a first word that is not a name, such as
    "Will" in "Will it rain?". A call of the policy returns one number for each word: 0 for a word
    that is masked, and infinity for any other word.

    Args:
        names: list of names. A name has one or several words.

    Raises:
        TypeError: if an entry is not a string.
        ValueError: if the list is empty, or an entry has neither a letter nor a digit.

    Example:
        >>> Gazetteer(["Will", "Kerry"])(["Kerry's men will go"], np.random.default_rng(1))
        [array([ 0., inf, inf, inf])]
    """

    names: Sequence[str]

    kind: ClassVar[str] = "gazetteer"
    has_levels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the list and store it as a tuple."""
        object.__setattr__(self, "names", _read_phrases("names", self.names))

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document: 0 or inf."""
        phrases = _index_phrases(self.names)
        return [_zero_or_inf_levels(split_words(text), phrases, names=True) for text in documents]


def _normalise_word(word: str) -> str:
    return _OUTER_PUNCTUATION.sub("", word).casefold()


def _read_phrases(name: str, stated: Any) -> tuple[str, ...]:
    requirement = "a list of at least one word or phrase"
    if isinstance(stated, (str, bytes, Mapping)) or not isinstance(stated, Iterable):
        raise mistyped(name, requirement, stated)
    phrases = as_texts(name, sorted(stated) if isinstance(stated, (set, frozenset)) else stated)
    for place, phrase in enumerate(phrases):
        if not any(map(_normalise_word, split_words(phrase))):
            raise invalid(f"{name}[{place}]", "a phrase with a letter or a digit", phrase)
    return phrases


def _index_phrases(phrases: Sequence[str]) -> _PhraseIndex:
    """Return a dictionary from a first word to the phrases that begin with it.

    Each phrase is a tuple of words in lower case without punctuation.
    """
    index: _PhraseIndex = {}
    for phrase in phrases:
        words = tuple(word for word in map(_normalise_word, split_words(phrase)) if word)
        index.setdefault(words[0], []).append(words)
    return index


def _zero_or_inf_levels(words: Sequence[str], phrases: _PhraseIndex, names: bool = False) -> Levels:
    """Return a level for each word: 0 if the word is a part of a listed phrase, otherwise inf.

    If `names` is True, the first word of a phrase must begin with a capital letter.
    """
    levels = np.full(len(words), np.inf)
    # Separate punctuation between the words of a phrase does not count as a word.
    kept = [(place, _OUTER_PUNCTUATION.sub("", word)) for place, word in enumerate(words)]
    kept = [(place, word) for place, word in kept if word]
    bare = [(_POSSESSIVE_ENDING.sub("", word) if names else word).casefold() for _, word in kept]
    for start, word in enumerate(bare):
        if names and not kept[start][1][0].isupper():
            continue
        for phrase in phrases.get(word, ()):
            if tuple(bare[start : start + len(phrase)]) == phrase:
                levels[kept[start][0] : kept[start + len(phrase) - 1][0] + 1] = 0.0
    return levels


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spans(FrozenPolicy, word="redaction.Spans"):
    """Policy that masks the words that a function, a spaCy pipeline or a presidio analyzer finds.

    A span is a part of the text, given by the position of its first character and the position
    after its last character. A word is masked if at least one character of the word is in a span. A
    call of the policy returns one number for each word: 0 for a word that is masked, and infinity
    for any other word.

    Args:
        function: one of these:

            - a function from a text to a list of spans `(start, end)`. Start and end are positions
              of characters, with the end excluded. Spans must not overlap;
            - a spaCy `Language`. The entities that it finds are masked;
            - a presidio `AnalyzerEngine`. The spans that it finds are masked, and may overlap.
        language: code of the language of the texts, such as "en". Only `AnalyzerEngine` uses it.

    Raises:
        TypeError: if `function` is not one of these.

    Example:
        >>> import re
        >>> digits = Spans(lambda text: [found.span() for found in re.finditer("[0-9]+", text)])
        >>> digits(["Born in 1970, aged 50."], np.random.default_rng(1))
        [array([inf, inf,  0., inf,  0.])]
    """

    function: Callable[[str], Any]
    language: str = "en"

    kind: ClassVar[str] = "spans"
    has_levels: ClassVar[bool] = False
    # The user's function may be random.
    is_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the function."""
        if not callable(self.function) and not has_all(self.function, "analyze"):
            raise mistyped("function", "a function text -> [(start, end)]", self.function)

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document: 0 or inf."""
        return [self._levels(f"spans of texts[{row}]", text) for row, text in enumerate(documents)]

    def _levels(self, name: str, text: str) -> Levels:
        spans = self._find_spans(name, text)
        words = np.array([match.span() for match in _WORD_SPAN_PATTERN.finditer(text)])
        levels = np.full(len(words), np.inf)
        for start, end in spans:
            levels[(words[:, 0] < end) & (words[:, 1] > start)] = 0.0
        return levels

    def _find_spans(self, name: str, text: str) -> list[tuple[int, int]]:
        function: Any = self.function
        if is_analyzer := has_all(function, "analyze"):
            entities = function.analyze(text=text, language=self.language)
            stated_spans = [(entity.start, entity.end) for entity in entities]
        elif has_all(stated_spans := function(text), "ents"):
            stated_spans = [(entity.start_char, entity.end_char) for entity in stated_spans.ents]
        requirement = f"pairs of places, 0 <= start < end <= {len(text):,}"
        spans = []
        for span in stated_spans:
            if not isinstance(span, (tuple, list)) or len(span) != 2:
                raise mistyped(name, requirement, span)
            start, end = (integer(name, place, 0, len(text)) for place in span)
            if start >= end:
                raise invalid(name, requirement, span)
            spans.append((start, end))
        spans.sort()
        for (_, end), after in pairwise(spans):
            if not is_analyzer and after[0] < end:
                raise invalid(name, f"disjoint ({name_of(self.function)} returned others)", after)
        return spans


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Learned(FrozenPolicy, word="redaction.Learned"):
    """Policy that masks the words with the highest rank first; a neural network computes ranks.

    The network computes a rank from the vector of a word. The training has this purpose: if the
    words with the highest ranks are masked, two sets of texts should become similar. The network
    has four linear layers, with tanh after the first three layers and a sigmoid after the last
    layer. During the training, `fit` multiplies the vectors of the words with the highest ranks by
    weights near 0. Then `fit` computes the mean vector of each text, and minimises a divergence
    between the mean vectors of the two sets.

    The training may end in a poor minimum. For example, in a test, one word revealed the set of
    each text. With one of ten seeds, the trained policy masked this revealing word last. A word
    without a vector is also masked last. Even if the divergence after the training is small, an
    attack may succeed.

    Args:
        vectors: words in lower case, with their vectors.
        share: share of the words of each text that are masked in training, in (0, 1).
        hidden: number of units in each of the three hidden layers.
        epochs: number of training passes over the smaller set of texts.
        parameters: all weights of the network in one array, set by `fit`.
        fitted_on: fingerprints (hashes) of the training texts, set by `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range.

    Source:
        Gusain and Leith (2025), Improving Privacy Benefits of Redaction. dpcore fits a Gaussian
        distribution with independent entries to each set. `fit` minimises the sum of the KL
        divergences in the two directions.

    Example:
        >>> Learned(Embedding(["a", "b"], [[0.0], [1.0]])).is_fitted
        False
    """

    vectors: Embedding
    share: float = 0.3
    hidden: int = 64
    epochs: int = 30
    parameters: Any = ()
    fitted_on: frozenset[int] = frozenset()

    kind: ClassVar[str] = "learned"
    needs_fit: ClassVar[bool] = True
    is_fit_random: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields and make the parameters read-only."""
        instance("vectors", self.vectors, Embedding)
        real("share", self.share, low=0.0, high=1.0, open_low=True, open_high=True)
        integer("hidden", self.hidden, 1)
        integer("epochs", self.epochs, 1)
        parameters = numeric("parameters", "numbers, the weights of the network", self.parameters)
        parameters = frozen_array(parameters.astype(np.float64))
        object.__setattr__(self, "parameters", parameters)

    @property
    def is_fitted(self) -> bool:
        """True if the policy was fitted."""
        return bool(self.parameters.size)

    def fit(self, sensitive: Any, safe: Any, *, rng: Rng = None) -> Learned:
        """Fit a copy of this policy on two sets of texts, and return the copy.

        Args:
            sensitive: texts of the sensitive set. Each text has at least one word.
            safe: texts of the safe set. Each text has at least one word.
            rng: None, an int seed or a numpy Generator. `rng` determines the initial weights of the
                network and the order of the texts.

        Returns:
            The fitted copy. The original policy is unchanged.

        Raises:
            ModuleNotFoundError: if torch is missing.
            ValueError: if a set or a text is empty.
        """
        sets = as_texts("sensitive", sensitive), as_texts("safe", safe)
        torch = require_module("torch", "redaction.Learned")
        generator = np.random.default_rng(to_seed(rng))
        scaled = self._unit_std_vectors()
        vectors = [self._vectors_of(text, scaled)[0] for part in sets for text in part]
        # A repeated word passes through the network once. Single precision halves the time.
        unique, ids = np.unique(np.concatenate(vectors), axis=0, return_inverse=True)
        table = torch.from_numpy(np.vstack([unique, np.zeros_like(unique[:1])])).float()
        texts = np.split(ids.ravel(), np.cumsum([len(part) for part in vectors])[:-1])
        rows = texts[: len(sets[0])], texts[len(sets[0]) :]
        layers = [
            torch.from_numpy(generator.normal(size=shape) / shape[0] ** 0.5)
            .float()
            .requires_grad_()
            for size, after in pairwise(self._layer_sizes)
            for shape in ((size, after), (1, after))
        ]
        optimiser = torch.optim.Adam(layers, lr=_LEARNING_RATE)
        batch = min(_DOCUMENTS_PER_BATCH, *map(len, rows))
        for _ in range(self.epochs * (min(map(len, rows)) // batch)):
            chosen = [[part[i] for i in generator.permutation(len(part))[:batch]] for part in rows]
            softened = [self._soft_masked_word_means(torch, layers, table, part) for part in chosen]
            loss = _symmetric_kl_of_fitted_gaussians(*softened)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        parameters = np.concatenate([part.detach().numpy().ravel() for part in layers])
        return replace(self, parameters=parameters, fitted_on=hash_texts(sets[0] + sets[1]))

    def __call__(self, documents: Sequence[str], rng: np.random.Generator) -> list[Levels]:
        """Return the levels of the words of each document; the result is not random."""
        require_fitted(self)
        levels, scaled = [], self._unit_std_vectors()
        for text in documents:
            rows, is_known = self._vectors_of(text, scaled)
            levels.append(descending_rank_levels(np.where(is_known, self._logits(rows), -np.inf)))
        return levels

    @property
    def _layer_sizes(self) -> tuple[int, ...]:
        return self.vectors.dim, self.hidden, self.hidden, self.hidden, 1

    def _unit_std_vectors(self) -> Floats:
        scaled: Floats = self.vectors.vectors / max(float(self.vectors.vectors.std()), 1e-12)
        return scaled

    def _vectors_of(self, text: str, scaled: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return a vector for each word of a text, and True for each word with a known vector.

        The vector of a word such as "well-known" is the mean over the vectors of its known parts.
        """
        words = split_words(text)
        rows, is_known = np.zeros((len(words), self.vectors.dim)), np.zeros(len(words), bool)
        for place, word in enumerate(words):
            parts = [self.vectors.rows[part] for part in words_of(word) if part in self.vectors]
            if parts:
                rows[place], is_known[place] = scaled[parts].mean(axis=0), True
        return rows, is_known

    def _logits(self, rows: Floats) -> Floats:
        at = 0
        for size, after in pairwise(self._layer_sizes):
            weights = self.parameters[at : at + size * after].reshape(size, after)
            at += (size + 1) * after
            outputs = rows @ weights + self.parameters[at - after : at]
            rows = np.tanh(outputs)
        # The sigmoid of the last layer is left out, because it does not change the order.
        ranks: Floats = outputs[:, 0]
        return ranks

    def _soft_masked_word_means(
        self, torch: Any, layers: Sequence[Any], table: Any, texts: Sequence[Any]
    ) -> Any:
        """Return the mean vector of each text, with soft masks on the words of high rank."""
        sizes = np.array([len(part) for part in texts])
        # The row of zeros fills the places after the last word of a text.
        padded = np.full((len(texts), sizes.max()), len(table) - 1)
        for row, part in zip(padded, texts, strict=True):
            row[: len(part)] = part
        words, places = np.unique(padded, return_inverse=True)
        ranks = table[torch.from_numpy(words)]
        for place in range(0, len(layers), 2):
            ranks = ranks @ layers[place] + layers[place + 1]
            ranks = torch.tanh(ranks) if place < len(layers) - 2 else torch.sigmoid(ranks)
        ranks = ranks[torch.from_numpy(places.reshape(padded.shape)), 0]
        ranks = ranks.masked_fill(torch.from_numpy(padded == len(table) - 1), -1.0)
        masks = np.maximum(1, (self.share * sizes + 0.5).astype(np.int64))
        ordered = ranks.sort(dim=1, descending=True).values
        threshold = ordered.gather(1, torch.from_numpy(masks[:, None] - 1))
        kept = torch.sigmoid(_THRESHOLD_SHARPNESS * (threshold - ranks))
        sums = (kept[:, None, :] @ table[torch.from_numpy(padded)])[:, 0, :]
        return sums / torch.from_numpy(sizes[:, None])


def _symmetric_kl_of_fitted_gaussians(first_rows: Any, second_rows: Any) -> Any:
    """Return the sum of the two KL divergences between two sets of rows (both directions).

    Each set of rows is replaced by a Gaussian distribution with independent entries.
    """
    (mean, variance), (other, other_variance) = (
        (rows.mean(dim=0), rows.var(dim=0, correction=0) + _ADDED_VARIANCE)
        for rows in (first_rows, second_rows)
    )
    gap = (mean - other) ** 2
    return 0.5 * ((variance + gap) / other_variance + (other_variance + gap) / variance - 2.0).sum()
