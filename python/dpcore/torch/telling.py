"""A private encoder in words: what is claimed, what is true, for whom, and what was encoded."""

from __future__ import annotations

import math

from .private import LEAST_SIGNAL, PrivateEncoder

__all__ = ["rows", "told"]


def told(private: PrivateEncoder) -> str:
    """Format the encoder as lines of text, one word before each."""
    lines = [f"  {label:<12} {line}" for label, line in rows(private)]
    return "\n".join([f"PrivateEncoder of {private.encoder.name}", *lines])


def rows(private: PrivateEncoder) -> list[tuple[str, str]]:
    """List what there is to know of an encoder, as (label, text)."""
    delta = f", delta {private.delta:g}" if private.delta else ""
    public = private.public
    return [
        ("vectors", f"{private.width:,} numbers in {private.domain!r}"),
        ("transform", repr(private.transform)),
        ("noise", _format_noise_layer(private)),
        *(("chosen", line) for line in _describe_choice(private)),
        ("signal", _describe_signal(private)),
        ("claim", f"epsilon {private.epsilon:g}{delta}, for any two texts, one encoding of each"),
        *[("provided", f"that these rows are public: {', '.join(public)}")] * bool(public),
        ("true", _format_true_epsilon(private)),
        ("repeats", f"k encodings of one text cost k times {private.epsilon:g}"),
        ("not covered", "the texts that the encoder was trained on"),
        ("batches", str(private.batches)),
        ("texts", _format_encoded_texts(private)),
        ("worst pair", _format_worst_pair(private)),
        ("device", str(private.encoder.device)),
        ("randomness", "torch's default, seeded by the system: no cryptographic generator"),
    ]


def _format_noise_layer(private: PrivateEncoder) -> str:
    law = " ".join(repr(private.noise).split())
    kinds = {
        "LaplaceNoise": "independent in every entry",
        "GaussianNoise": "independent in every entry",
        "L2LaplaceNoise": "one direction and length for each row",
    }
    what = kinds.get(type(private.noise).__name__) or private.noise.faulty
    return f"{law}{': ' if what else ''}{what}"


def _describe_choice(private: PrivateEncoder) -> list[str]:
    if not private.errors:
        return []
    errors = sorted(private.errors.items(), key=lambda item: item[1])
    others = ", ".join(f"{name} {error:.4g}" for name, error in errors[1:])
    name, least = errors[0]
    return [f"{name}: least expected squared error of a vector, {least:.4g} ({others})"]


def _describe_signal(private: PrivateEncoder) -> str:
    found = private.measure_signal()
    if found is None:
        return "not known: no law of the noise is"
    entry, noise, share = found
    level = f"typical entry {entry:.2g}, noise {noise:.2g}"
    energy = f"{level}: {100.0 * share:.2g} % of a vector's energy is signal"
    few = share < LEAST_SIGNAL
    why = f"; NO UTILITY IS TO BE EXPECTED below {100.0 * LEAST_SIGNAL:g} %" if few else ""
    return f"{energy} (root mean squares over {len(private.probe)} probe texts){why}"


def _format_true_epsilon(private: PrivateEncoder) -> str:
    found = private.true_epsilon
    at = f" at delta {private.delta:g}" if private.delta else ""
    level = f"epsilon {found:.6g}{at}" if math.isfinite(found) else "no epsilon at all"
    real = private.real
    why = private.noise.faulty or ("" if real is None else real.reason)
    false = found > private.epsilon * (1.0 + 1e-9)
    return f"{level}, for any two texts{': ' if why else ''}{why}{'; THE CLAIM IS FALSE' * false}"


def _format_encoded_texts(private: PrivateEncoder) -> str:
    done, cut = private.counted["texts"], private.counted["cut"]
    longest = private.encoder.longest
    limit = "" if longest is None else f", {cut:,} of them cut after {longest:,} tokens"
    zeroed = getattr(private.transform, "zeroed", 0)
    zeros = f", {zeroed:,} rows made zero by the transform" if zeroed else ""
    return f"{done:,} encoded so far{limit}{zeros}"


def _format_worst_pair(private: PrivateEncoder) -> str:
    if private.worst is None:
        return "not looked for (worst_pair(texts))"
    pair, loss = private.worst
    shown = " and ".join(
        repr(text if len(text) <= 40 else f"{text[:37]}...") for text in (pair.x, pair.x_prime)
    )
    if loss is None:
        return f"no exact loss, for the encoder is random: {shown}"
    level = f"{loss:.4f}" if math.isfinite(loss) else "infinite"
    return f"exact loss {level} (computed from the declared noise, not certified): {shown}"
