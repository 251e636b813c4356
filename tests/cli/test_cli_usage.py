"""The command line: bad usage ends with 2 and one line, before anything is drawn."""

from __future__ import annotations

import re
import shlex

import pytest

COMMAND = "audit --x a --x-prime b --claim 1 --command"
LINES = [
    ("audit", "name a system"),
    ("audit laplace", "laplace needs --epsilon"),
    ("audit laplce --epsilon 1", "did you mean laplace"),
    ("audit laplace --epsilon 1 --clip 1", "--clip does not apply to laplace"),
    ("audit adept --epsilon 1 --sensitivity 1", "--sensitivity does not apply to adept"),
    ("audit laplace --epsilon 1 --nan keep", "--nan does not apply"),
    ("audit dptext --epsilon 1 --nan drop", "--nan must be one of"),
    ("audit laplace --epsilon 0", "--epsilon must be a finite number above 0"),
    ("audit laplace --epsilon nan", "--epsilon must be a finite number"),
    ("audit laplace --epsilon 1 --dim 0", "--dim must be"),
    ("audit laplace --epsilon 1 --seed -1", "--seed must be"),
    ("audit laplace --epsilon 1 --start -1", "--start must be a whole number at least 0"),
    ("audit laplace --epsilon 1 --trials many", "--trials must be"),
    ("audit laplace --epsilon 1 --trials 1.5", "--trials must be"),
    ("audit laplace --epsilon 1 --confidence 1", "--confidence must be"),
    ("audit laplace --epsilon 1 --delta 1", "--delta must be"),
    ("audit laplace --epsilon 1 --threads 0", "--threads must be"),
    ("audit laplace --epsilon 1 --block 0", "--block must be"),
    ("audit laplace --epsilon 1 --route scenic", "--route must be"),
    ("audit laplace --epsilon 1 --claim -1", "--claim must be"),
    ("audit laplace --epsilon 1 --attack best", "--attack must be one of 'auto', 'majority'"),
    ("audit laplace --epsilon 1 --bound best", "--bound must be one of 'clopper_pearson'"),
    ("audit laplace --epsilon 1 --bound conditional --delta 0.1", "--bound must be another"),
    ("audit laplace --epsilon 1 --stop soon", "--stop must be one of 'fixed', 'refuted'"),
    ("audit laplace --epsilon 1 --stop refuted --no-claim", "--stop refuted needs a claim"),
    ("audit laplace --epsilon 1 --stop refuted --attack majority", "--attack must be one that"),
    ("audit laplace --epsilon 1 --pilot 1", "--pilot must be an integer at least 2"),
    ("audit laplace --epsilon 1 --patterns all", "--patterns needs --dim"),
    ("audit laplace --epsilon 1 --route integer", "--route must be 'sampled' or 'auto'"),
    ("audit laplace --epsilon 1 --html no/such/a.html", "--html must name a file in a folder"),
    ("audit laplace --epsilon 1 --claim 1 --no-claim", "exclude each other"),
    ("audit laplace --epsilon 1 --x 1", "go together"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 2 --dim 1", "--dim does not apply"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 1", "different in at least one entry"),
    ("audit laplace --epsilon 1 --x 1 --x-prime 1,2", "equal shape"),
    ("audit laplace --epsilon 1 --x 1,b --x-prime 1,2", "--x must be numbers"),
    ("audit laplace --epsilon 1 --x nan --x-prime 1", "--x must be"),
    ("audit laplace --epsilon 1 --x @no.npy --x-prime 1", "--x must name an .npy file"),
    ("audit laplace --epsilon 1 --plot a.xyz", "--plot must end in"),
    ("audit laplace --epsilon 1 --plot no/such/a.png", "--plot must name a file in a folder"),
    ("audit laplace --epsilon 1 --text a --text-prime b", "--text does not apply to laplace"),
    ("audit laplace --epsilon 1 --timeout 3", "--timeout is for --command"),
    ("audit laplace --epsilon 1 --sped 1", "--sped"),
    ("audit laplace adept --epsilon 1", "unexpected"),
    ("audit --list --epsilon 1", "--list only lists"),
    ("audit --list laplace", "--list only lists"),
    ("audit nowhere.py:f --claim 1", "no such file: nowhere.py"),
    ("audit-outputs a.npy b.npy --rows independent --claim 1 --html nowhere/page.html",
     "--html must name a file in a folder that can be written to, got nowhere"),
    ("reproduce nothing", "no such experiment"),
    ("reproduce --trials 5", "only lists"),
    ("reproduce published-systems --trials 0", "--trials must be"),
    ("reproduce published-systems --seed -1", "--seed must be"),
    ("reproduce published-systems --threads 0", "--threads must be"),
    ("reproduce published-systems --out OWN", "--out must be"),
    ("deduce", "deduce"),
    # Mechanisms of a user.
    ("audit OWN:release --dim 1", "has no claim: give --claim EPSILON"),
    ("audit OWN:release --claim 1", "has no default_pair: give two inputs that the claim calls ne"),
    ("audit OWN:release --claim 1 --dim 8", "give two inputs that the claim calls neighbours, --x"),
    ("audit OWN:native --claim 1 --dim 8", "give two inputs that the claim calls neighbours, --x"),
    ("audit OWN:relese --dim 1 --claim 1", "did you mean 'release'?"),
    ("audit OWN:Space.nothing --dim 1 --claim 1", "has no 'Space.nothing'"),
    ("audit OWN:number --dim 1 --claim 1", "number must be a callable"),
    ("audit OWN:Claiming", "got a class"),
    ("audit OWN:release --dim 1 --claim 1 --epsilon 1", "--epsilon does not apply to a mechanism"),
    ("audit OWN:release --dim 1 --claim 1 --clip 1", "--clip does not apply to a mechanism"),
    ("audit OWN:release --x 0 --x-prime 1 --claim 1 --route integer", "--route must be 'auto'"),
    ("audit OWN:release --x 0 --x-prime 1 --claim 1 --start 1", "--start must be a multiple"),
    ("audit OWN:claiming --dim 3", "takes no dim"),
    ("audit OWN: --claim 1", "name the mechanism in the file"),
    ("audit OWN --claim 1", "name the mechanism in the file"),
    ("audit OWN.txt:f --claim 1", "is not a Python file"),
    # Texts.
    ("audit OWN:release --text a", "--text and --text-prime go together"),
    ("audit OWN:release --text a --text-prime b --dim 2", "no --x, --x-prime or --dim"),
    ("audit OWN:release --text a --text-prime b --x 2", "no --x, --x-prime or --dim"),
    ("audit OWN:release --text a --text-prime b --patterns one --dim 2", "no other input"),
    # Commands.
    (f"{COMMAND} 'no-such-program {{x}} {{size}}'",
     "--command must be a program that is on the PATH and executable"),
    (f'{COMMAND} "python \'tool.py {{x}} {{size}}"',
     "--command must be a program and its arguments, quoted"),
    (f"{COMMAND} ''", "--command must be a list of texts, the program and its arguments"),
    (f"{COMMAND} 'sh {{x}}'", "--command must be one with {size} in an argument"),
    (f"{COMMAND} 'sh {{x}} {{size}}' laplace", "--command is what is audited: leave out laplace"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --epsilon 1",
     "--epsilon does not apply to a command: --claim is the"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --repeat", "--repeat does not apply to a command"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --text a --text-prime b", "--x and --x-prime are the two in"),
    (f"{COMMAND} 'sh {{x}} {{size}}' --timeout 0",
     "--timeout must be a finite number above 0, got 0.0"),
    ("audit --command 'sh {x} {size}' --x a --x-prime b",
     "a command has no claim: give --claim EPSILON, or --no-claim"),
    ("audit --command 'sh {x} {size}' --claim 1",
     "give two inputs that the claim calls neighbours: --x TEXT"),
    ("audit --command 'sh {x} {size}' --claim 1 --x a", "--x and --x-prime go together"),
]  # fmt: skip
"""A line, in which OWN stands for the file of a user, and what its error says."""


@pytest.mark.parametrize(("line", "complaint"), LINES)
def test_bad_usage_is_2_with_one_line(run, own, tmp_path, line, complaint):
    (tmp_path / "noisy.py.txt").write_text("")
    status, out, err = run("", *shlex.split(line.replace("OWN", own)))
    assert (status, out) == (2, "")
    assert complaint in err
    # A user's file may print before it.
    assert re.search("(?m)^error: ", err)
    assert "Traceback" not in err
