"""Messages of wrong calls of `dpcore.text`: the argument, and a word of the remedy."""

import math

import numpy as np
from shared_messages import check_messages

import dpcore
from dpcore import Pair
from dpcore.text import Corpus, Rewriter, Vocabulary, generated, read, redaction, schedules, split
from dpcore.text.redaction import Gazetteer, Keywords, Learned, Random, Ranked, Spans, redact
from dpcore.text.redaction.masking import mask_words
from dpcore.text.schedules import Constant, LogUniformEpsilon, OverEpochs, Stretched, UniformEpsilon
from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

words = dpcore.text.words
record_delta, link, epsilon_of = redaction.record_delta, words.link, schedules.epsilon_of

TWO = ["one two", "one two three"]

SAFE = ["the knee was seen", "no knee is small", "a heart was seen", "the scan is a heart"]

PAIR = ("a good film", "a bad film")

CORPUS = Corpus([f"text {i % 70}" for i in range(100)], labels=[i % 3 for i in range(100)])

AUTHORS = [f"author {row % 25}" for row in range(200)]

WRITTEN = Corpus([f"text {row}" for row in range(200)], attributes={"author": AUTHORS})

WORDS = [f"w{i}" for i in range(40)]

VECTORS = Embedding(WORDS, np.random.default_rng(1).normal(size=(40, 6)))

SMALL = Embedding(("bad", "fine", "good", "grim"), [[0.0], [4.0], [5.0], [1.0]])

TWINS = Embedding(("sofa", "bed", "couch"), [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])

MANY = Embedding([str(i) for i in range(2**16 + 1)], np.arange(2.0**16 + 1)[:, None])

SAN = SanText(SMALL, 1.0)


NUMBERED = Vocabulary.from_texts(TWO, unknown="drop")

NESTED = []
NESTED.append(NESTED)


def redact_by(levels):
    return lambda: redact(TWO, lambda documents, rng: levels, level=0.5)


def redact_spans(*spans):
    return lambda: redact(["ab cc de"], Spans(lambda text: spans))


VALUE_ERRORS = [
    # Policies that mask words: which words, how many, in which style, and bad input.
    (redact_spans((0, 3), (2, 4)), "spans of texts[0]", "disjoint"),
    (redact_spans((0, 99)), "spans of texts[0]", "an integer from 0 to 8"),
    (redact_spans((3, 3)), "spans of texts[0]", "pairs of"),
    (lambda: redact(["a text"], Ranked(), level=0.5), "policy", "fitted before it is used"),
    (redact_by([[0, 1]]), "levels of <lambda>", "arrays for 2 documents"),
    (redact_by([[0, 1], [0, 1]]), "levels of <lambda> for texts[1]", "each of 3 words"),
    (redact_by([[0, np.nan], [0, 1, 1]]), "levels of <lambda> for texts[0]", "got nan"),
    (redact_by([[0, 1], [0, 1, 1.5]]), "levels of <lambda> for texts[1]", "a number from 0 to 1"),
    (redact_by([[0, -np.inf], [0, 1, 1]]), "levels of <lambda> for texts[0]", "got -inf"),
    (lambda: redact(texts=["a text"], policy=Random(), level=None), "level", "a share from 0 to 1"),
    (lambda: redact(texts=["a text"], policy=Random(), level=1.2), "level", "a finite"),
    (lambda: redact(texts=["a text"], policy=Random(), level=0.5, style="erase"), "style",
     "one of 'mask', 'collapse', 'drop'"),
    (lambda: redact(texts=["a", ""], policy=Random(), level=0.5), "texts[1]", "a text"),
    (lambda: Keywords([]), "keywords", "a list of at least one text"),
    (lambda: Keywords(["flu", "--"]), "keywords[1]", "a phrase with a"),
    (lambda: Ranked(words=("a",)), "weights", "numbers for 1 words"),
    (lambda: mask_words(["a b"], [np.array([0.5])], 0.5), "levels[0]", "one for each of 2 words"),
    (lambda: mask_words(["a b"], [], 0.5), "levels", "arrays for 1 texts"),
    (lambda: Learned(VECTORS, share=1.0), "share", "a finite number above 0 and below 1"),
    (lambda: Learned(VECTORS, hidden=0), "hidden", "an integer at least 1"),
    (lambda: Learned(VECTORS, epochs=0), "epochs", "an integer at least 1"),
    (lambda: redact(["w1 w2"], Learned(VECTORS), level=0.5), "policy", "fitted before it is used"),
    # Redaction of records: delta against enumeration, and audits of policies as mechanisms.
    (lambda: record_delta(p=1.5, words=11, differing=1), "p", "a finite number at least 0"),
    (lambda: record_delta(p=0.5, words=11, differing=12), "differing", "an integer from 1 to 11"),
    (lambda: record_delta(p=0.5, words=0, differing=1), "words", "an integer from 1 to"),
    (lambda: redaction.policy_mechanism(Ranked(), 0.5), "policy", "fitted, or safe= given"),
    (lambda: redaction.policy_mechanism(Random(), 0.5, safe=SAFE), "policy",
     "one with a method fit(sensitive"),
    (lambda: redaction.policy_mechanism(Random(), 0.5, words=0), "words", "an integer from 1"),
    (lambda: redaction.policy_mechanism(Ranked(), 0.5, safe=[]), "safe", "a list"),
    # Generated corpora: learnable, repeatable, split as said.
    (lambda: generated("topic", 1000), "kind", "one of 'topics', 'intents', 'repeats'"),
    (lambda: generated("topics", 99), "rows", "an integer from 100 to"),
    (lambda: generated("topics", 2**63), "rows", "an integer from 100 to"),
    (lambda: generated("topics", 1000, -1), "rng", "an integer from 0 to 9223372036854775807"),
    # Rewriters of texts as mechanisms.
    (lambda: dpcore.audit(Rewriter(lambda texts: texts[:1]), PAIR, claim=1.0), "", "2 rows"),
    # Training schedules: their formulas, their draws, and what of a user's function is refused.
    (lambda: Constant(0), "epsilon", "a finite number above 0"),
    (lambda: OverEpochs(math.nan), "start", "a finite number above 0"),
    (lambda: Stretched(10, 0), "end", "a finite number above 0"),
    (lambda: Stretched(1e300, 1e-300), "start / end", "a finite number above 0"),
    (lambda: UniformEpsilon(10, 2), "high", "at least low=10"),
    (lambda: LogUniformEpsilon(0, 2), "low", "a finite number above 0"),
    (lambda: UniformEpsilon(2, 10, every="step"), "every", "one of"),
    (lambda: Constant(5)(0, 3), "epoch", "an integer from 1 to 3"),
    (lambda: Constant(5)(4, 3), "epoch", "an integer from 1 to 3"),
    (lambda: Stretched(5, 1)(1, 0), "epochs", "an integer at least 1"),
    # Splits: equal texts together, shares kept, chance even.
    (lambda: split(CORPUS, (0.8, 0.1), 1), "shares", "three shares"),
    (lambda: split(CORPUS, (0.8, 0.1, 0.2), 1), "shares", "add up to 1"),
    (lambda: split(CORPUS, (1.2, -0.1, -0.1), 1), "shares[1]", "a finite number at least 0"),
    (lambda: split(CORPUS, {"train": 0.8, "dev": 0.2}, 1), "shares", "one of 'train'"),
    (lambda: split(CORPUS, (0.999, 0.0005, 0.0005), 1), "corpus", "enough different texts"),
    (lambda: split(WRITTEN, (0.8, 0.1, 0.1), 1, group=["one"] * 200), "group", "of enough groups"),
    (lambda: split(WRITTEN, (0.8, 0.1, 0.1), 1, group="town"), "group", "one of 'author'"),
    (lambda: split(WRITTEN, (0.8, 0.1, 0.1), 1, group=[1, 2]), "groups", "got '2 values'"),
    # Vocabulary: numbers, unknown words, n-grams.
    (lambda: Vocabulary(["a", "a"], "drop"), "words", "different words"),
    (lambda: Vocabulary(["<pad>"], "drop"), "words", "none of them reserved"),
    (lambda: Vocabulary(["a"], "skip"), "unknown", "one of 'drop', 'token'"),
    (lambda: Vocabulary(["a"], "drop", ngrams=0), "ngrams", "an integer at least 1"),
    (lambda: Vocabulary.from_texts(["a b"], unknown="drop", min_count=2), "min_count", "at most 1"),
    (lambda: Vocabulary.from_texts(["..."], unknown="drop"), "min_count", "at most 0"),
    (lambda: Vocabulary.from_texts(["a"], unknown="drop", max_size=0), "max_size", "an integer"),
    (lambda: Vocabulary(["a"], "drop").decode([[2]]), "ids[0]", "from 0 to 1"),
    (lambda: Vocabulary(["a"], "drop").decode([[-1]]), "ids[0]", "from 0 to 1"),
    # Mechanisms that replace words: tables against plain formulas, losses against all outputs.
    # Beyond gamma TEM's loss does not depend on epsilon.
    (lambda: words.calibrate(CusText, SMALL, loss=1.0), "kind", "a class with a finite loss"),
    (lambda: words.calibrate(TEM, SMALL, loss=50.0), "loss", "one that TEM has for some epsilon"),
    (lambda: words.calibrate(SanText, SMALL, loss=0.0), "loss", "a finite number above 0"),
    # Linkage of rewritten texts: against a loop over likelihoods, at both extremes, and bad input.
    (lambda: link(SanText(VECTORS, 1.0), ["w1"], ["w1"]), "originals", "two texts or more"),
    (lambda: link(SanText(VECTORS, 1.0), ["w1", "w2"], ["w1"]), "outputs", "one for each of 2"),
    (lambda: link(SanText(VECTORS, 1.0), ["w1", ""], ["w1", "w2"]), "originals[1]", "at least"),
    (lambda: words.Linkage(3, 2, 1, 0.5, "likelihood"), "right", "an integer from 0 to 2"),
    # Wrong arguments and inputs of mechanisms that replace words, each named by its message.
    (lambda: SAN("", 1, 1), "x", "a word or a text with at least one word"),
    (lambda: SAN("good cat", 1, 1), "x", "made of words with a vector"),
    (lambda: SAN(4, 1, 1), "x", "an integer from 0 to 3"),
    (lambda: SAN("good", -1, 1), "size", "an integer at least 0"),
    (lambda: SAN.pair("good", "bad grim"), "b", "a text of as many words as a, 1"),
    (lambda: SAN.pair("good", "good"), "b", "different from a"),
    (lambda: SAN.text_loss("good", "bad fine"), "b", "a text of as many words as"),
    (lambda: SAN.text_loss("good", "good"), "b", "different from a"),
    (lambda: SAN.text_loss("good", "bad", delta=0.0), "delta", "a finite"),
    (lambda: SAN.replace([4], 1), "numbers", "whole numbers from 0 to 3"),
    (lambda: SAN.replace([[1]], 1), "numbers", "shape"),
    (lambda: SAN.log_ratio([4], Pair("good", "bad")), "outputs", "word numbers"),
    (lambda: SAN.log_ratio([[1, 2]], Pair("good", "bad")), "outputs", "shape"),
    (lambda: SAN.rewrite([""]), "texts[0]", "a text that is not empty"),
    (lambda: SAN.rewrite(["good", "!"]), "texts[1]", "at least one word"),
    (lambda: SAN.rewrite(["bad", "good cat"]), "texts[1]", "got 'cat'"),
    (lambda: SAN.rewrite(["bad"], unknown="skip"), "unknown", "one of 'error'"),
    (lambda: SAN.loss(Pair("good", "bad"), 1.0), "delta", "a finite"),
    (lambda: SanText(Embedding(("only",), [[1.0]]), 1.0), "vectors", "those of at least two words"),
    (lambda: SanText(TWINS, 1.0), "vectors", "one for 'sofa' and 'couch'"),
    (lambda: SanText(SMALL, 0.0), "epsilon", "above 0"),
    (lambda: SanText(MANY, 1.0)("5", 1, 1), "vectors", "those of at most 65,536 words"),
    (lambda: TEM(SMALL, 1.0, beta=0.9), "beta", "below 0.75"),
    (lambda: TEM(SMALL, 1.0, beta=0.0), "beta", "above 0"),
    (lambda: CusText(SMALL, 1.0, k=5), "k", "an integer from 1 to 4"),
    (lambda: CusText(SMALL, 1.0, k=0), "k", "an integer from 1 to 4"),
    (lambda: CusText(SMALL, 1.0, k=2, mapping="bold"), "mapping", "one of 'conservative'"),
    (lambda: Vickrey(SMALL, 1.0, t=1.1), "t", "at most 1"),
    (lambda: MetricLaplace(SMALL, 1e-12), "epsilon", "at least"),
    (lambda: SanTextPlus(SMALL, 1.0, ("cat",)), "sensitive", "words of which"),
    (lambda: SanTextPlus(SMALL, 1.0, ("bad",), p=0.0), "p", "above 0"),
    (lambda: SanTextPlus.rarest(SMALL, 1.0, ["bad"], share=2.0), "share", "at most 1"),
    (lambda: words.compare(SMALL, loss=0.0), "loss", "above 0"),
    (lambda: Rewriter(sorted, claim=-1.0), "claim", "at least 0"),
    (lambda: Rewriter(sorted, takes="list"), "takes", "'text'"),
    (lambda: Rewriter(lambda text: text, takes="texts"), "takes", "as the signature"),
    (lambda: Rewriter(lambda x: x[::-1])("a b", 2, None), "takes", "one text and a list of texts"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: Corpus(["a", "b"], groups=np.array(1.0)), "groups", "an integer or a string for each"),
    (lambda: NUMBERED.decode([NESTED]), "ids[0]", "a row of integers"),
    (lambda: NUMBERED.decode([[1], [1, [1]]]), "ids[1]", "a row of integers"),
    # Policies that mask words: which words, how many, in which style, and bad input.
    (redact_spans((0.0, 2)), "spans of texts[0]", "an integer"),
    (redact_spans(4), "spans of texts[0]", "pairs of places"),
    (redact_by([["a", "b"], [0, 1, 1]]), "levels of <lambda> for texts[0]", "a number"),
    (redact_by("ab"), "levels of <lambda>", "a list"),
    (redact_by(None), "levels of <lambda>", "a list"),
    (lambda: redact(texts="a text", policy=Random(), level=0.5), "texts", "a list"),
    (lambda: redact(texts=["a text"], policy=Random, level=0.5), "policy", "a function"),
    (lambda: Keywords("flu"), "keywords", "a list of at least one word"),
    (lambda: Gazetteer([3]), "names[0]", "a text"),
    (lambda: Spans("flu"), "function", "a function text"),
    (lambda: Random("exact"), "exact", "True or False"),
    (lambda: Learned({"a": [1.0]}), "vectors", "a Embedding"),
    # Generated corpora: learnable, repeatable, split as said.
    (lambda: generated(None, 1000), "kind", "one of"),
    (lambda: generated("topics", 1e3), "rows", "an integer"),
    (lambda: generated("topics", 1000, 0.5), "rng", "None, an int in [0, 2**63)"),
    # Readers: formats, guesses, and what is said of malformed and missing files.
    (lambda: read(3), "path", "a path of a file or a folder"),
    # Rewriters of texts as mechanisms.
    (lambda: dpcore.audit(Rewriter(lambda texts: [1] * len(texts)), PAIR, claim=1.0),
     "", "strings"),
    # Training schedules: their formulas, their draws, and what of a user's function is refused.
    (lambda: Constant("5"), "epsilon", "a finite number above 0"),
    (lambda: UniformEpsilon(2, 10, every=1), "every", "one of"),
    (lambda: OverEpochs(5)(1.0, 3), "epoch", "an integer"),
    (lambda: UniformEpsilon(2, 10)(1, 3, None), "rng", "a Generator"),
    (lambda: LogUniformEpsilon(2, 10)(1, 3, 7), "rng", "a Generator"),
    # Splits: equal texts together, shares kept, chance even.
    (lambda: split(["a", "b"], (0.8, 0.1, 0.1), 1), "corpus", "a Corpus"),
    (lambda: split(CORPUS, 0.8, 1), "shares", "three shares"),
    (lambda: split(CORPUS, "abc", 1), "shares", "three shares"),
    # Vocabulary: numbers, unknown words, n-grams.
    (lambda: Vocabulary("abc", "drop"), "words", "a list of strings"),
    (lambda: Vocabulary(["a"], "drop", tokenise="x"), "tokenise", "a function"),
    (lambda: Vocabulary.from_texts("a b", unknown="drop"), "texts", "not a single string"),
    (lambda: Vocabulary.from_texts(["a"], unknown="drop", tokenise=str.lower), "tokenise(text)",
     "list of strings"),
    (lambda: Vocabulary(["a"], "drop").encode("a"), "texts", "not a single string"),
    (lambda: Vocabulary(["a"], "drop").decode([1]), "ids[0]", "a row of integers"),
    (lambda: Vocabulary(["a"], "drop").decode([[0.5]]), "ids[0]", "a row of integers"),
    (lambda: Vocabulary(["a"], "drop").spans(3), "text", "a str"),
    # Mechanisms that replace words: tables against plain formulas, losses against all outputs.
    # Beyond gamma TEM's loss does not depend on epsilon.
    (lambda: words.calibrate("SanText", SMALL, loss=1.0), "kind", "a class of mechanisms"),
    # Linkage of rewritten texts: against a loop over likelihoods, at both extremes, and bad input.
    (lambda: link("SanText", ["a", "b"], ["a", "b"]), "mechanism", "a WordMechanism"),
    (lambda: link(SanText(VECTORS, 1.0), "ab", ["w1", "w2"]), "originals", "a list of texts"),
    (lambda: link(SanText(VECTORS, 1.0), [float("nan"), "w1"], ["w1", "w2"]), "originals[0]",
     "a text or a list of words"),
    # Wrong arguments and inputs of mechanisms that replace words, each named by its message.
    (lambda: SAN(1.5, 1, 1), "x", "a word, the number of one, a text"),
    (lambda: SAN.replace([0.5], 1), "numbers", "whole numbers from 0 to 3, shape"),
    (lambda: SAN.rewrite("good"), "texts", "a list of at least one text"),
    (lambda: SAN.log_ratio([0.5], Pair("good", "bad")), "outputs", "word numbers"),
    (lambda: SanText({"bad": [1.0]}, 1.0), "vectors", "a Embedding"),
    (lambda: SanTextPlus(SMALL, 1.0, "bad"), "sensitive", "a list"),
    (lambda: words.compare("glove.txt", loss=2.0), "vectors", "a Embedding"),
    (lambda: Rewriter("a"), "rewrite", "a function of a list of texts"),
    (lambda: Rewriter(lambda x, size, rng: x), "rewrite", "or of one text, with or without rng"),
    (lambda: Rewriter(lambda: "a"), "rewrite", "with or without rng"),
    (lambda: Rewriter(lambda text: len(text))("a b", 1, None), "", "strings"),
    (lambda: Rewriter(lambda texts: "a b")("a b", 1, None), "", "a list, one for each text"),
    (lambda: Rewriter(sorted)(3, 1, None), "x", "a text (a string)"),
]  # fmt: skip
ZERO_DIVISION_ERRORS = [
    # Training schedules: their formulas, their draws, and what of a user's function is refused.
    (lambda: epsilon_of(lambda epoch, epochs, rng: 1 / 0, 1, 1, None), "", "division by zero"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(ZeroDivisionError, ZERO_DIVISION_ERRORS)
