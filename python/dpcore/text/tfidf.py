"""The default encoder of texts: TF-IDF and a truncated SVD, fitted only on training texts."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..errors import flag, integer, invalid, message, tag_error
from ..mechanisms.texts import as_texts
from ..packages import load_arrays, require_module
from ..paths import write_file_or_keep_old
from ..records import Floats
from ..report.shown import Shown
from ..suggestions import explain_argument_errors
from .corpus import all_or_training_texts

_CLASS_WORD: Final = "text.TfidfSVD"
_FILE_KEYS: Final = {"class", "format", "dim", "min_count", "ngrams", "seed", "fitted_on", "words"}


@explain_argument_errors
class TfidfSVD(Shown):
    """Encoder of texts: TF-IDF weights of the words of a text, reduced by a truncated SVD.

    Suppose that a word occurs k times in a text, and that m of n training texts contain the word.
    The weight of the word in the text is then ``(1 + ln k) (1 + ln((1 + n) / (1 + m)))``. The
    weights of a text are divided by their L2 norm. The divided weights of all training texts form a
    matrix, with a row for each text. This matrix has `dim` right singular vectors that belong to
    its largest singular values. The weights of a text are projected on these vectors. Words are
    defined as in scikit-learn: two or more letters or digits in a row, in lower case. The vector of
    a text does not depend on the other texts that are encoded in the same call. The encoder is not
    private, because its words and weights come from the training texts.

    Args:
        dim: number of entries of a vector, at least 1.
        min_count: a word is used only if at least `min_count` training texts contain it.
        ngrams: largest number of successive words that get one weight together. 1 means weights of
            single words. 2 means weights of single words and of word pairs.
        seed: seed of the randomised SVD.

    Raises:
        TypeError: if an argument is not an integer.
        ValueError: if an argument is out of range.

    Source:
        Deerwester et al. (1990), latent semantic analysis; Halko, Martinsson and Tropp (2011) for
        the randomised SVD. dpcore calls scikit-learn for these methods.

    Example:
        >>> from dpcore.text import generated
        >>> corpus = generated("topics", 500, rng=1)
        >>> encoder = TfidfSVD(20).fit(corpus)
        >>> encoder
        TfidfSVD(dim=20; 334 words of 400 train texts)
        >>> encoder.encode(corpus.test.texts).shape
        (50, 20)
    """

    def __init__(self, dim: int, *, min_count: int = 2, ngrams: int = 1, seed: int = 0) -> None:
        """Check the parameters."""
        self.dim = integer("dim", dim, 1)
        self.min_count = integer("min_count", min_count, 1)
        self.ngrams = integer("ngrams", ngrams, 1)
        self.seed = integer("seed", seed, 0, 2**32 - 1)
        self.fitted_on = 0
        self._weights: Any = None
        self._directions: Floats | None = None

    def __repr__(self) -> str:
        """Return one line with the parameters, and the size of the fitted vocabulary."""
        fitted = "not fitted"
        if self._weights is not None:
            fitted = f"{len(self._weights.vocabulary_):,} words of {self.fitted_on:,} train texts"
        return f"TfidfSVD(dim={self.dim}; {fitted})"

    def fit(self, corpus: Any, *, allow_fewer: bool = False) -> TfidfSVD:
        """Fit this encoder to texts: its vocabulary, the weights of words, and the projection.

        Args:
            corpus: a `Corpus` or a list of strings. The encoder is fitted on the training part of a
                `Corpus`. If the `Corpus` has no split, the encoder is fitted on all texts.
            allow_fewer: True allows fewer than `dim` training texts or fewer than `dim` words. The
                number of entries of a vector is then the number of texts or the number of words,
                whichever is smaller. False raises an error in this case.

        Returns:
            The encoder itself.

        Raises:
            ModuleNotFoundError: if scikit-learn is missing.
            TypeError: if `allow_fewer` is not a bool.
            ValueError: if no word is in at least `min_count` texts. Also if there are fewer than
                `dim` texts or fewer than `dim` words although `allow_fewer` is False.
        """
        allow_fewer = flag("allow_fewer", allow_fewer)
        texts = all_or_training_texts(corpus)
        weights = self._vectoriser()
        try:
            rows = weights.fit_transform(texts)
        except ValueError as error:
            # scikit-learn's message is "no terms remain". The reason is that no word is frequent
            # enough.
            requirement = f"small enough that words are left ({error})"
            raise invalid("min_count", requirement, self.min_count) from None
        most = min(rows.shape)
        if self.dim > most and not allow_fewer:
            size = f"{rows.shape[0]:,} texts, {rows.shape[1]:,} words in {self.min_count} or more"
            raise invalid("dim", f"at most {most}, what the train texts allow ({size})", self.dim)
        decomposition = require_module("sklearn.decomposition", "TfidfSVD")
        if rows.shape[1] == 1:
            # scikit-learn can decompose only matrices of at least two columns.
            self._directions = np.ones((1, 1))
        else:
            from threadpoolctl import threadpool_limits

            solver = decomposition.TruncatedSVD(min(self.dim, most), random_state=self.seed)
            # One thread is used, because with two threads the last bits differ (by 6.7e-14 at dim
            # 200) and only a tenth of the time is saved. Equal texts have variance 0, and
            # scikit-learn divides by it: 0/0.
            with threadpool_limits(1), np.errstate(invalid="ignore"):
                self._directions = np.ascontiguousarray(solver.fit(rows).components_.T)
        self._weights, self.fitted_on = weights, len(texts)
        return self

    def encode(self, texts: Any) -> Floats:
        """Compute the vectors of texts; the vector of a text without a known word is zero.

        Args:
            texts: a list of strings.

        Returns:
            float64 vectors, shape `(len(texts), dim)`. The vectors have fewer than `dim` entries if
            `fit` was called with `allow_fewer=True` on fewer than `dim` texts or words.

        Warns:
            UserWarning: if some texts have no known word. The warning states the number of these
                texts.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the encoder is not fitted, the list is empty, or a text is empty.
        """
        rows = self.weigh_words(texts)
        unknown = int(np.sum(np.diff(rows.indptr) == 0))
        if unknown:
            text = f"{unknown:,} of {rows.shape[0]:,} texts have no known word: their vectors are 0"
            warnings.warn(text, UserWarning, stacklevel=2)
        assert self._directions is not None
        # A sparse-dense product sums each row separately, in the order of its words, independently
        # of the other rows. The rounding of a dense product would depend on its blocks.
        return np.asarray(rows @ self._directions)

    __call__ = encode

    def weigh_words(self, texts: Any) -> Any:
        """Compute the TF-IDF weights of the words of texts, without projecting the weights.

        Args:
            texts: a list of strings.

        Returns:
            A scipy CSR matrix with a row for each text and a column for each known word. The L2
            norm of a row is 1, or 0 if the text has no known word.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the encoder is not fitted, the list is empty, or a text is empty.
        """
        checked = as_texts("texts", texts)
        if self._weights is None:
            raise invalid("encoder", "fitted before it encodes: encoder.fit(corpus)", self)
        return self._weights.transform(checked)

    @property
    def words(self) -> tuple[str, ...]:
        """Words that this encoder knows, in the order of the columns of `weigh_words`.

        The tuple is empty before `fit`.
        """
        return () if self._weights is None else tuple(self._weights.get_feature_names_out())

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Save this fitted encoder in a folder, in the files config.json and model.safetensors.

        Args:
            folder: folder for the files, created if it is missing.

        Raises:
            ModuleNotFoundError: if safetensors is missing.
            ValueError: if the encoder is not fitted.
        """
        if self._weights is None or self._directions is None:
            raise invalid("encoder", "fitted before it is saved: encoder.fit(corpus)", self)
        numpy_files = require_module("safetensors.numpy", "save_pretrained")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        config = {
            "class": _CLASS_WORD, "format": 1, "dim": self._directions.shape[1],
            "min_count": self.min_count, "ngrams": self.ngrams, "seed": self.seed,
            "fitted_on": self.fitted_on, "words": list(self.words),
        }  # fmt: skip
        arrays = {"idf": np.ascontiguousarray(self._weights.idf_), "directions": self._directions}
        write_file_or_keep_old(place / "model.safetensors", numpy_files.save(arrays), "folder")
        write_file_or_keep_old(place / "config.json", json.dumps(config, indent=1), "folder")

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> TfidfSVD:
        """Load an encoder that `save_pretrained` wrote.

        The loaded encoder computes the same vectors as the saved encoder.

        Args:
            folder: folder with config.json and model.safetensors.

        Raises:
            ModuleNotFoundError: if scikit-learn or safetensors is missing.
            FileNotFoundError: if a file is missing.
            ValueError: if config.json is for another class, has unknown or missing keys, or does
                not match the saved arrays.
        """
        require_module("safetensors.numpy", "from_pretrained")
        config = _read_config(Path(folder))
        settings = {name: config[name] for name in ("min_count", "ngrams", "seed")}
        encoder = cls(config["dim"], **settings)
        encoder.fitted_on = integer("fitted_on", config["fitted_on"], 1)
        arrays = load_arrays(_require_file(Path(folder), "model.safetensors"), "numpy")
        words = as_texts("words", config["words"])
        shapes = {"idf": (len(words),), "directions": (len(words), encoder.dim)}
        array_shapes = {name: array.shape for name, array in arrays.items()}
        if array_shapes != shapes:
            raise invalid("model.safetensors", f"arrays of shapes {shapes}", array_shapes)
        encoder._weights = encoder._vectoriser(list(words))
        encoder._weights.idf_ = arrays["idf"]
        encoder._directions = np.ascontiguousarray(arrays["directions"])
        return encoder

    def _vectoriser(self, words: list[str] | None = None) -> Any:
        return require_module("sklearn.feature_extraction.text", "TfidfSVD").TfidfVectorizer(
            sublinear_tf=True, min_df=self.min_count, ngram_range=(1, self.ngrams), vocabulary=words
        )


def _require_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        text = message("folder", f"one with a file {name}", str(folder))
        raise tag_error(FileNotFoundError(text), "folder")
    return path


def _read_config(folder: Path) -> dict[str, Any]:
    path = _require_file(folder, "config.json")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise invalid("config.json", f"JSON ({error})", str(path)) from None
    settings = config if isinstance(config, dict) else {}
    if (settings.get("class"), settings.get("format")) != (_CLASS_WORD, 1):
        raise invalid("config.json", f"of the class {_CLASS_WORD!r}, format 1", config)
    if set(settings) != _FILE_KEYS:
        raise invalid("config.json", f"of the keys {sorted(_FILE_KEYS)}", sorted(settings))
    return settings
